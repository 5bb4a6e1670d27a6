// Calls as Python writes them: [f(a=1, b="x"), g(c=[True, None])]. Literals alone; Python's
// reference, 6.2.
#include <cctype>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "text/tool_calls.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kMaxDepth = 64;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<std::vector<ToolCall>> Calls() {
    std::vector<ToolCall> calls;
    if (!Take('[')) return std::nullopt;
    do {
      ToolCall call;
      if (!ReadCall(&call)) return std::nullopt;
      calls.push_back(std::move(call));
    } while (Take(','));
    if (!Take(']') || (Skip(), at_ != text_.size())) return std::nullopt;
    return calls;
  }

 private:
  void Skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool Take(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string Word() {
    Skip();
    const size_t first = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '_' || text_[at_] == '.' || text_[at_] == '-')) {
      ++at_;
    }
    return std::string(text_.substr(first, at_ - first));
  }

  bool ReadCall(ToolCall* call) {
    call->name = Word();
    if (call->name.empty() || !Take('(')) return false;
    Json arguments = Json::object();
    while (!Take(')')) {
      if (!arguments.empty() && !Take(',')) return false;
      if (!arguments.empty() && Take(')')) break;
      const std::string name = Word();
      Json value;
      if (name.empty() || arguments.contains(name) || !Take('=') || !ReadValue(&value, 0)) {
        return false;
      }
      arguments[name] = std::move(value);
    }
    call->arguments = arguments.dump(-1, ' ', false, Json::error_handler_t::replace);
    return true;
  }

  bool ReadValue(Json* value, int depth) {
    Skip();
    if (depth > kMaxDepth || at_ >= text_.size()) return false;
    const char c = text_[at_];
    if (c == '"' || c == '\'') return ReadString(value);
    if (Take('[')) return ReadList(value, ']', depth);
    if (Take('(')) return ReadList(value, ')', depth);
    if (Take('{')) return ReadObject(value, depth);
    const bool signed_number = c == '+';
    if (signed_number) ++at_;
    std::string word = Word();
    // An exponent's sign.
    if (at_ < text_.size() && text_[at_] == '+' && !word.empty()) {
      ++at_;
      word += "+" + Word();
    }
    if (word == "True" || word == "true") return *value = true, true;
    if (word == "False" || word == "false") return *value = false, true;
    if (word == "None" || word == "null") return *value = nullptr, true;
    const Json number = Json::parse(word, nullptr, false);
    if (!number.is_number()) return false;
    *value = number;
    return true;
  }

  bool ReadList(Json* value, char close, int depth) {
    *value = Json::array();
    while (!Take(close)) {
      if (!value->empty() && !Take(',')) return false;
      if (!value->empty() && Take(close)) break;
      Json item;
      if (!ReadValue(&item, depth + 1)) return false;
      value->push_back(std::move(item));
    }
    return true;
  }

  bool ReadObject(Json* value, int depth) {
    *value = Json::object();
    while (!Take('}')) {
      if (!value->empty() && !Take(',')) return false;
      if (!value->empty() && Take('}')) break;
      Json key;
      Json item;
      if (!ReadValue(&key, depth + 1) || !key.is_string() || !Take(':') ||
          !ReadValue(&item, depth + 1)) {
        return false;
      }
      (*value)[key.get<std::string>()] = std::move(item);
    }
    return true;
  }

  bool ReadString(Json* value) {
    const char quote = text_[at_++];
    std::string out;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\n') return false;
      if (text_[at_] != '\\') {
        out += text_[at_++];
      } else if (!ReadEscape(&out)) {
        return false;
      }
    }
    if (at_ >= text_.size()) return false;
    ++at_;
    *value = std::move(out);
    return true;
  }

  bool ReadEscape(std::string* out) {
    if (at_ + 1 >= text_.size()) return false;
    const char c = text_[at_ + 1];
    at_ += 2;
    switch (c) {
      case 'n':
        *out += '\n';
        return true;
      case 't':
        *out += '\t';
        return true;
      case 'r':
        *out += '\r';
        return true;
      case '\\':
      case '\'':
      case '"':
        *out += c;
        return true;
      case 'u': {
        // JSON has the same escape, surrogates aside.
        const std::string escape = "\"\\u" + std::string(text_.substr(at_, 4)) + "\"";
        const Json decoded = Json::parse(escape, nullptr, false);
        if (!decoded.is_string()) return false;
        *out += decoded.get<std::string>();
        at_ += 4;
        return true;
      }
      default:
        // Python keeps what it does not know.
        *out += '\\';
        *out += c;
        return true;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<ToolCall>> ParsePythonicCalls(std::string_view text) {
  return Reader(text).Calls();
}

}  // namespace lockstep
