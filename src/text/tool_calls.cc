#include "text/tool_calls.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/json_scan.h"

namespace lockstep {
namespace {

using Calls = std::optional<std::vector<ToolCall>>;

constexpr size_t kMaxDepth = 128;

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Brackets within strings are counted too: the bound only becomes stricter.
bool TooDeep(std::string_view text) {
  size_t depth = 0;
  for (const char c : text) {
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && depth > 0) --depth;
    if (depth > kMaxDepth) return true;
  }
  return false;
}

bool IsObject(std::string_view json) {
  return Trim(json).starts_with('{') && nlohmann::json::accept(json);
}

// {"name": ..., "arguments" or "parameters": ...}
std::optional<ToolCall> ParseObject(std::string_view text) {
  if (TooDeep(text) || !IsObject(text)) return std::nullopt;
  const auto name = FindMember(text, "name");
  if (!name || !name->starts_with('"')) return std::nullopt;
  ToolCall call;
  call.name = nlohmann::json::parse(*name, nullptr, false).get<std::string>();
  if (call.name.empty()) return std::nullopt;
  auto arguments = FindMember(text, "arguments");
  if (!arguments) arguments = FindMember(text, "parameters");
  if (!arguments || *arguments == "null") {
    call.arguments = "{}";
  } else if (arguments->starts_with('"')) {
    // Written as the API has them: as text.
    call.arguments = nlohmann::json::parse(*arguments, nullptr, false).get<std::string>();
    if (TooDeep(call.arguments)) return std::nullopt;
  } else {
    call.arguments = std::string(*arguments);
  }
  if (!IsObject(call.arguments)) return std::nullopt;
  return call;
}

// Values one after the other, with `separator` between them.
Calls ParseObjects(std::string_view text, char separator) {
  std::vector<ToolCall> calls;
  while (true) {
    text = Trim(text);
    JsonScanner scanner;
    const size_t size = scanner.Push(text);
    if (!scanner.done()) return std::nullopt;
    const auto call = ParseObject(text.substr(0, size));
    if (!call) return std::nullopt;
    calls.push_back(*call);
    text = Trim(text.substr(size));
    if (text.empty()) return calls;
    if (!text.starts_with(separator)) return std::nullopt;
    text.remove_prefix(1);
  }
}

// name[ARGS]{...}, several with the beginning mark between them.
Calls ParseNamed(std::string_view text) {
  constexpr std::string_view kArguments = "[ARGS]";
  std::vector<ToolCall> calls;
  while (!text.empty()) {
    size_t end = text.find(MarksOf(ToolFormat::kMistral).begin);
    const std::string_view one = Trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos
                           ? text.size()
                           : end + MarksOf(ToolFormat::kMistral).begin.size());
    size_t brace = one.find('{');
    if (brace == std::string_view::npos) return std::nullopt;
    std::string_view name = Trim(one.substr(0, brace));
    if (name.ends_with(kArguments)) name = Trim(name.substr(0, name.size() - kArguments.size()));
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
      return c != '[' && c != ']' && c != '"' && c != ' ' && c != '\n';
    });
    if (name.empty() || !plain || TooDeep(one) || !IsObject(one.substr(brace))) return std::nullopt;
    calls.push_back({std::string(name), std::string(one.substr(brace))});
  }
  if (calls.empty()) return std::nullopt;
  return calls;
}

Calls ParseMistral(std::string_view text) {
  text = Trim(text);
  if (!text.starts_with('[')) return ParseNamed(text);
  if (!text.ends_with(']')) return std::nullopt;
  return ParseObjects(text.substr(1, text.size() - 2), ',');
}

}  // namespace

Calls ParseToolCalls(ToolFormat format, std::string_view text) {
  switch (format) {
    case ToolFormat::kTagged: {
      const auto call = ParseObject(text);
      if (!call) return std::nullopt;
      return std::vector<ToolCall>{*call};
    }
    case ToolFormat::kLlama3:
      return ParseObjects(text, ';');
    case ToolFormat::kMistral:
      return ParseMistral(text);
    case ToolFormat::kPythonic:
      return ParsePythonicCalls(text);
    case ToolFormat::kNone:
      break;
  }
  return std::nullopt;
}

}  // namespace lockstep
