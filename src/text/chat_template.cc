#include "text/chat_template.h"

#include <ctime>
#include <utility>

#include "text/rust_call.h"
//
#include "lockstep_text/bridge.h"

namespace lockstep {

struct ChatTemplate::Rep {
  rust::Box<rust_text::TextTemplate> compiled;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Rep> rep, std::string source)
    : rep_(std::move(rep)), source_(std::move(source)) {}
ChatTemplate::~ChatTemplate() = default;

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::Compile(
    std::string_view source, const ChatTemplateConstants& constants) {
  auto compiled = CallRust([&] {
    return rust_text::template_compile(RustBytes(source), RustBytes(constants.bos_token),
                                       RustBytes(constants.eos_token));
  });
  if (!compiled.ok()) return compiled.status();
  auto rep = std::make_unique<Rep>(Rep{std::move(compiled).value()});
  return std::shared_ptr<const ChatTemplate>(new ChatTemplate(std::move(rep), std::string(source)));
}

Result<std::string> ChatTemplate::Render(std::string_view context_json,
                                         std::optional<int64_t> unix_time) const {
  const int64_t time = unix_time ? *unix_time : static_cast<int64_t>(std::time(nullptr));
  auto rendered = CallRust(
      [&] { return rust_text::template_render(*rep_->compiled, RustBytes(context_json), time); });
  if (!rendered.ok()) return rendered.status();
  return std::string(*rendered);
}

}  // namespace lockstep
