#include "text/answer_parser.h"

#include <algorithm>
#include <utility>

#include "text/tool_calls.h"

namespace lockstep {
namespace {

using Deltas = std::vector<AnswerDelta>;
using Kind = AnswerDelta::Kind;

constexpr std::string_view kSpace = " \t\r\n";
constexpr size_t kNone = std::string_view::npos;

size_t LeadingSpace(std::string_view text) {
  return std::min(text.find_first_not_of(kSpace), text.size());
}

size_t WithoutTrailingSpace(std::string_view text) {
  const size_t last = text.find_last_not_of(kSpace);
  return last == kNone ? 0 : last + 1;
}

// The length of the longest end of `text` that may still become `mark`.
size_t PartialMark(std::string_view text, std::string_view mark) {
  for (size_t size = std::min(text.size(), mark.size() - 1); size > 0; --size) {
    if (mark.starts_with(text.substr(text.size() - size))) return size;
  }
  return 0;
}

void Append(Kind kind, std::string_view text, Deltas* out) {
  if (text.empty()) return;
  if (!out->empty() && out->back().kind == kind && kind != Kind::kCall) {
    out->back().text += text;
  } else {
    out->push_back({kind, std::string(text)});
  }
}

// The whole of `mark` is at the beginning of `text`, or not, or may be yet.
enum class Match { kYes, kNo, kMaybe };
Match MatchAt(std::string_view text, std::string_view mark) {
  if (text.starts_with(mark)) return Match::kYes;
  return mark.starts_with(text) ? Match::kMaybe : Match::kNo;
}

}  // namespace

AnswerParser::AnswerParser(AnswerParserOptions options)
    : options_(std::move(options)), marks_(MarksOf(options_.tools)) {}

void AnswerParser::Push(std::string_view text, Deltas* out) {
  pending_ += text;
  while (Step(/*last=*/false, out)) {
  }
}

void AnswerParser::Finish(Deltas* out) {
  while (Step(/*last=*/true, out)) {
  }
}

bool AnswerParser::Step(bool last, Deltas* out) {
  switch (state_) {
    case State::kStart:
      return Start(last);
    case State::kReasoning:
    case State::kContent:
      return Text(last, out);
    case State::kCall:
      return Call(last, out);
    case State::kOpen:
      return Open();
    case State::kBefore:
      return Before(out);
    case State::kArgs:
      return Args(out);
    case State::kAfter:
      return After();
    case State::kBetween:
      return Between();
  }
  return false;
}

bool AnswerParser::Start(bool last) {
  if (!options_.reasons) {
    EndReasoning();
    trims_ = false;
    return true;
  }
  if (options_.reasoning_open) {
    state_ = State::kReasoning;
    trims_ = true;
    return true;
  }
  const size_t space = LeadingSpace(pending_);
  const Match match = MatchAt(std::string_view(pending_).substr(space), kThinkBegin);
  if (match == Match::kMaybe && !last) return false;
  if (match != Match::kYes) {
    EndReasoning();
    trims_ = false;
    return true;
  }
  Drop(space + kThinkBegin.size());
  state_ = State::kReasoning;
  trims_ = true;
  return true;
}

size_t AnswerParser::reasoning_bytes() const {
  return TextKind() == Kind::kReasoning ? SIZE_MAX : reasoning_bytes_;
}

void AnswerParser::EndReasoning() {
  if (state_ == State::kReasoning) reasoning_bytes_ = taken_;
  state_ = options_.enforced != nullptr ? State::kOpen : State::kContent;
  trims_ = true;
}

Kind AnswerParser::TextKind() const {
  const State state = state_ == State::kCall ? text_state_ : state_;
  return state == State::kReasoning ? Kind::kReasoning : Kind::kContent;
}

void AnswerParser::Drop(size_t size) {
  taken_ += std::min(size, pending_.size());
  pending_.erase(0, size);
  searched_ = searched_ > size ? searched_ - size : 0;
}

void AnswerParser::Show(size_t size, Deltas* out) {
  if (size == 0) return;
  Append(TextKind(), std::string_view(pending_).substr(0, size), out);
  if (TextKind() == Kind::kContent) has_text_ = true;
  trims_ = false;
  Drop(size);
}

// Whether the answer begins as one of the formats that have no mark.
bool AnswerParser::BeginsWholeCall(bool last, bool* wait) const {
  if (state_ != State::kContent || has_text_ || calls_ > 0) return false;
  const char first = options_.tools == ToolFormat::kLlama3     ? '{'
                     : options_.tools == ToolFormat::kPythonic ? '['
                                                               : '\0';
  if (first == '\0') return false;
  const size_t space = LeadingSpace(pending_);
  *wait = space == pending_.size() && !last;
  return space < pending_.size() && pending_[space] == first;
}

void AnswerParser::BeginCall(size_t mark, size_t body) {
  text_state_ = state_;
  state_ = State::kCall;
  mark_ = mark;
  body_ = searched_ = body;
}

bool AnswerParser::Text(bool last, Deltas* out) {
  if (trims_) Drop(LeadingSpace(pending_));
  if (pending_.empty()) return false;
  bool wait = false;
  if (BeginsWholeCall(last, &wait)) {
    BeginCall(0, 0);
    return true;
  }
  if (wait) return false;

  const std::string_view text = pending_;
  const bool reasoning = state_ == State::kReasoning;
  const size_t end = reasoning ? text.find(kThinkEnd, searched_) : kNone;
  const size_t call = marks_.begin.empty() ? kNone : text.find(marks_.begin, searched_);
  if (end < call) {
    Show(WithoutTrailingSpace(text.substr(0, end)), out);
    Drop(pending_.find(kThinkEnd) + kThinkEnd.size());
    EndReasoning();
    return true;
  }
  if (call != kNone) {
    const size_t shown = WithoutTrailingSpace(text.substr(0, call));
    Show(shown, out);
    BeginCall(call - shown, call - shown + marks_.begin.size());
    return true;
  }
  if (last) {
    // White space at the end is content's alone, and only where no call came before.
    const bool keeps = !reasoning && calls_ == 0;
    Show(keeps ? text.size() : WithoutTrailingSpace(text), out);
    pending_.clear();
    return false;
  }
  size_t held = reasoning ? PartialMark(text, kThinkEnd) : 0;
  if (!marks_.begin.empty()) held = std::max(held, PartialMark(text, marks_.begin));
  searched_ = text.size() - held;
  Show(WithoutTrailingSpace(text.substr(0, searched_)), out);
  return false;
}

bool AnswerParser::Call(bool last, Deltas* out) {
  const std::string_view text = pending_;
  const std::string_view body = text.substr(body_);
  const size_t first = LeadingSpace(body);
  if (first == body.size() && !last) return false;
  // What is no JSON is none at once: the text must not wait for an end that never comes.
  if (options_.tools == ToolFormat::kTagged && first < body.size() && body[first] != '{') {
    NoCall(out);
    return true;
  }
  // The mark may also stand for the whole answer's end.
  const bool marked = mark_ != body_;
  const size_t end = marks_.end.empty() || !marked ? kNone : text.find(marks_.end, searched_);
  if (end == kNone && !last) {
    searched_ = std::max(body_, text.size() - std::min(text.size(), marks_.end.size()));
    return false;
  }
  const auto calls = ParseToolCalls(options_.tools, text.substr(body_, end - body_));
  if (!calls) {
    NoCall(out);
    return true;
  }
  for (const ToolCall& call : *calls) {
    if (options_.one_call && calls_ > 0) break;
    ++calls_;
    out->push_back({Kind::kCall, call.name});
    Append(Kind::kArguments, call.arguments, out);
  }
  if (text_state_ == State::kReasoning) reasoning_bytes_ = taken_ + mark_;
  Drop(end == kNone ? text.size() : end + marks_.end.size());
  state_ = State::kContent;
  searched_ = 0;
  trims_ = true;
  return true;
}

// The mark is text, and what follows it is looked through again.
void AnswerParser::NoCall(Deltas* out) {
  const size_t shown = body_;
  if (mark_ == body_) has_text_ = true;
  searched_ = 0;
  Show(shown, out);
  state_ = text_state_;
}

bool AnswerParser::Open() {
  if (trims_) Drop(LeadingSpace(pending_));
  if (pending_.empty()) return false;
  const Match match = MatchAt(pending_, options_.enforced->open);
  if (match == Match::kMaybe) return false;
  if (match == Match::kYes) Drop(options_.enforced->open.size());
  state_ = match == Match::kYes ? State::kBefore : State::kContent;
  return true;
}

bool AnswerParser::Before(Deltas* out) {
  bool maybe = false;
  const auto& shapes = options_.enforced->calls;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Match match = MatchAt(pending_, shapes[i].before);
    maybe |= match == Match::kMaybe;
    if (match != Match::kYes) continue;
    shape_ = i;
    ++calls_;
    out->push_back({Kind::kCall, shapes[i].name});
    Drop(shapes[i].before.size());
    scanner_ = JsonScanner();
    state_ = State::kArgs;
    return true;
  }
  // Cut before it was told which tool is called: of the fixed text nothing is shown.
  if (maybe) return false;
  state_ = State::kContent;
  return true;
}

bool AnswerParser::Args(Deltas* out) {
  const size_t size = scanner_.Push(pending_);
  Append(Kind::kArguments, std::string_view(pending_).substr(0, size), out);
  Drop(size);
  if (!scanner_.done()) return false;
  state_ = State::kAfter;
  return true;
}

bool AnswerParser::After() {
  const std::string& after = options_.enforced->calls[shape_].after;
  if (MatchAt(pending_, after) != Match::kYes) return false;
  Drop(after.size());
  state_ = State::kBetween;
  return true;
}

bool AnswerParser::Between() {
  const EnforcedCalls& enforced = *options_.enforced;
  if (pending_.empty()) return false;
  if (!enforced.close.empty() && MatchAt(pending_, enforced.close) != Match::kNo) return false;
  if (MatchAt(pending_, enforced.separator) != Match::kYes) return false;
  Drop(enforced.separator.size());
  state_ = State::kBefore;
  return true;
}

}  // namespace lockstep
