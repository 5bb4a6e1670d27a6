// A loaded model as the endpoints see it: names, text tools, engine and limits. Immutable once
// given to the server; shared by the requests that use it. The engine is borrowed: whoever owns it
// stops the server first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/response_store.h"
#include "base/status.h"
#include "engine/engine.h"
#include "grammar/grammar.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace lockstep {

struct ServedModel {
  std::string id;
  std::vector<std::string> aliases;  // other names that requests may use
  bool any_model_name = false;       // a request may name anything; the answer still says `id`
  int64_t created = 0;               // Unix seconds
  std::string fingerprint;           // system_fingerprint: what the bytes depend on
  std::string version;               // of the program, for /version
  int32_t vocab_size = 0;
  int32_t max_context = 0;
  Engine* engine = nullptr;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;  // null: chat requests are refused
  std::shared_ptr<GrammarCompiler> grammars;          // for this vocabulary
  std::shared_ptr<ResponseStore> responses;           // null: none is kept
};

// Whether a request for `name` may be answered. Errors: kNotFound, param "model", listing the ids.
Status CheckModelName(const ServedModel& model, std::string_view name);

}  // namespace lockstep
