// ChatTemplate: a model's Jinja chat template, compiled once and rendered for each request as the
// `transformers` library renders it (trim_blocks, lstrip_blocks, its tojson, raise_exception,
// strftime_now, generation blocks). It is not a tokenizer: the result is text in which special
// tokens are written out, to be encoded with add_special off and parse_special on.
//
// Immutable and thread-safe. Rendering is bounded in time and in the size of the result.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace lockstep {

struct ChatTemplateConstants {
  std::string bos_token;
  std::string eos_token;
};

class ChatTemplate {
 public:
  // Errors: kInvalidArgument with the line at fault.
  static Result<std::shared_ptr<const ChatTemplate>> Compile(
      std::string_view source, const ChatTemplateConstants& constants);

  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // `context_json` is an object: messages, tools, documents, add_generation_prompt and whatever
  // else the caller passes through; its keys win over the constants, and keep their order in
  // tojson. Errors: kInvalidArgument: the JSON is malformed, or the template raised (then the
  // message is the template's own and param() is "messages"), or it failed, perhaps for this input
  // alone (with the line; no param: it may use what is not supported); kResourceExhausted: the
  // bound on time or size was met. `unix_time` is what strftime_now tells, in seconds since 1970,
  // in the machine's time zone; unset, the clock.
  Result<std::string> Render(std::string_view context_json,
                             std::optional<int64_t> unix_time = {}) const;

  const std::string& source() const { return source_; }

 private:
  struct Rep;
  ChatTemplate(std::unique_ptr<Rep> rep, std::string source);
  std::unique_ptr<Rep> rep_;
  std::string source_;
};

}  // namespace lockstep
