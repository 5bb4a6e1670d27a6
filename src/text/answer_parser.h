// AnswerParser: the text of an answer, as it comes, to reasoning, content and tool calls. However
// the text is cut into pieces, the deltas of each kind join to the same texts. Linear in the text
// but for calls that are none.
//
// - Reasoning stands at the beginning alone; a <think> later on is text. The white space around it
//   is dropped.
// - A call that the model writes of its own accord is shown when it is whole: one that does not
//   parse stays in the text. Calls that a grammar enforces are shown as they come;
//   of one that is cut before its name is told nothing is shown.
// - White space before, between and after calls is dropped.
//
// Not thread-safe: one an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/answer_format.h"
#include "text/json_scan.h"

namespace lockstep {

// Calls of which a grammar fixes all but the arguments: open, call, (separator, call)*, close.
struct EnforcedCalls {
  struct Call {
    std::string name;
    std::string before;  // no one begins with another
    std::string after;
  };
  std::string open;
  std::vector<Call> calls;
  std::string separator;
  std::string close;
};

struct AnswerParserOptions {
  bool reasons = false;         // the model may reason
  bool reasoning_open = false;  // the prompt has begun the reasoning
  ToolFormat tools = ToolFormat::kNone;
  bool one_call = false;                          // the first call alone
  std::shared_ptr<const EnforcedCalls> enforced;  // null: none
};

struct AnswerDelta {
  enum class Kind {
    kReasoning,
    kContent,
    kCall,       // a call begins; text is its name
    kArguments,  // more of the latest call's arguments
  };
  Kind kind;
  std::string text;
};

class AnswerParser {
 public:
  explicit AnswerParser(AnswerParserOptions options);

  // Appends what is certain now.
  void Push(std::string_view text, std::vector<AnswerDelta>* out);
  // Appends the rest. The answer is over.
  void Finish(std::vector<AnswerDelta>* out);

  size_t calls() const { return calls_; }
  // How many of the pushed bytes, from the first on, are reasoning and its marks; SIZE_MAX while it
  // goes on.
  size_t reasoning_bytes() const;

 private:
  enum class State : uint8_t {
    kStart,
    kReasoning,
    kContent,
    kCall,
    kOpen,
    kBefore,
    kArgs,
    kAfter,
    kBetween
  };

  // One step; false: more text is needed, or none is left.
  bool Step(bool last, std::vector<AnswerDelta>* out);
  bool Start(bool last);
  bool Text(bool last, std::vector<AnswerDelta>* out);
  bool Call(bool last, std::vector<AnswerDelta>* out);
  bool Open();
  bool Before(std::vector<AnswerDelta>* out);
  bool Args(std::vector<AnswerDelta>* out);
  bool After();
  bool Between();

  void EndReasoning();
  bool BeginsWholeCall(bool last, bool* wait) const;
  void BeginCall(size_t mark, size_t body);
  void NoCall(std::vector<AnswerDelta>* out);
  // Cuts `size` bytes off what is pending and shows them.
  void Show(size_t size, std::vector<AnswerDelta>* out);
  void Drop(size_t size);
  AnswerDelta::Kind TextKind() const;

  const AnswerParserOptions options_;
  const ToolMarks marks_;
  State state_ = State::kStart;
  State text_state_ = State::kContent;  // where a call that is none returns to
  std::string pending_;
  size_t taken_ = 0;            // bytes that were pending before
  size_t reasoning_bytes_ = 0;  // once it is over
  size_t searched_ = 0;         // of pending_, for the mark that is looked for
  size_t mark_ = 0;             // where a call's mark and its body begin
  size_t body_ = 0;
  bool trims_ = false;     // white space at the beginning of pending_ is dropped
  bool has_text_ = false;  // content was shown, or the whole answer is no call
  size_t calls_ = 0;
  size_t shape_ = 0;  // of the enforced call
  JsonScanner scanner_;
};

}  // namespace lockstep
