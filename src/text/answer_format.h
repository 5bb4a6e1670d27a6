// How a family of models marks reasoning and tool calls in the text of an answer, told from its
// chat template. Plain data; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

enum class ToolFormat {
  kNone,      // calls are not looked for
  kTagged,    // <tool_call>{"name": ..., "arguments": ...}</tool_call> (Hermes, Qwen)
  kLlama3,    // the whole answer is {"name": ..., "parameters": ...}, several with ";" between
  kMistral,   // [TOOL_CALLS] and a list of {"name", "arguments"}, or name[ARGS]{...}
  kPythonic,  // the whole answer is [f(a=1), g(b="x")]
};

// The text at which calls begin and end; empty where there is none.
struct ToolMarks {
  std::string_view begin;
  std::string_view end;
};
ToolMarks MarksOf(ToolFormat format);

inline constexpr std::string_view kThinkBegin = "<think>";
inline constexpr std::string_view kThinkEnd = "</think>";

// What the template's source says. A template that knows no tools is kTagged: the format that most
// models were taught.
ToolFormat ToolFormatOf(std::string_view chat_template);
// Whether its models reason between <think> and </think>.
bool Reasons(std::string_view chat_template);

// Whether the reasoning is open at the end of a rendered prompt.
bool OpensReasoning(std::string_view prompt);

}  // namespace lockstep
