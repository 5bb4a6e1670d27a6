#include "text/answer_format.h"

namespace lockstep {
namespace {

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

ToolMarks MarksOf(ToolFormat format) {
  switch (format) {
    case ToolFormat::kTagged:
      return {"<tool_call>", "</tool_call>"};
    case ToolFormat::kLlama3:
      return {"<|python_tag|>", ""};
    case ToolFormat::kMistral:
      return {"[TOOL_CALLS]", ""};
    case ToolFormat::kPythonic:
      return {"<|tool_call_start|>", "<|tool_call_end|>"};
    case ToolFormat::kNone:
      break;
  }
  return {};
}

ToolFormat ToolFormatOf(std::string_view chat_template) {
  if (Has(chat_template, "[TOOL_CALLS]")) return ToolFormat::kMistral;
  if (Has(chat_template, "<|tool_call_start|>")) return ToolFormat::kPythonic;
  if (Has(chat_template, "<tool_call>")) {
    // Calls as XML are another format, which has no parser here.
    return Has(chat_template, "<function=") ? ToolFormat::kNone : ToolFormat::kTagged;
  }
  if (Has(chat_template, "<|python_tag|>")) return ToolFormat::kLlama3;
  if (Has(chat_template, "<|start_header_id|>") && Has(chat_template, "\"parameters\"")) {
    return ToolFormat::kLlama3;
  }
  if (Has(chat_template, "<|header_start|>")) return ToolFormat::kPythonic;
  return ToolFormat::kTagged;
}

bool Reasons(std::string_view chat_template) { return Has(chat_template, kThinkEnd); }

bool OpensReasoning(std::string_view prompt) {
  const size_t last = prompt.find_last_not_of(" \t\r\n");
  return last != std::string_view::npos && prompt.substr(0, last + 1).ends_with(kThinkBegin);
}

}  // namespace lockstep
