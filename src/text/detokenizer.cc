#include "text/detokenizer.h"

#include <utility>

namespace lockstep {

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, DecodeOptions options)
    : tokenizer_(std::move(tokenizer)), options_(options), at_start_(!options.continuation) {}

std::string Detokenizer::Push(TokenId id) {
  std::string out;
  if (options_.skip_special && tokenizer_->IsSpecial(id)) return out;
  std::string_view bytes = tokenizer_->TokenBytes(id);
  if (at_start_ && !bytes.empty()) {
    at_start_ = false;
    if (tokenizer_->strips_leading_space() && bytes.front() == ' ') bytes.remove_prefix(1);
  }
  utf8_.Push(bytes, &out);
  return out;
}

std::string Detokenizer::Finish() {
  std::string out;
  utf8_.Finish(&out);
  at_start_ = !options_.continuation;
  return out;
}

}  // namespace lockstep
