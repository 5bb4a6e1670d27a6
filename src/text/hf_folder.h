// HfFolder: what the files of a Hugging Face model folder say about its tokenizer, read and
// checked. Private to this folder. A plain value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/types.h"

namespace lockstep {

struct HfFolder {
  std::string tokenizer_json;            // the whole file
  std::optional<std::string> bos_token;  // texts, from tokenizer_config or special_tokens_map
  std::optional<std::string> eos_token;
  std::optional<bool> add_bos_token;  // only for the classes that heed it
  std::optional<std::string> chat_template;
  std::vector<TokenId> eos_ids;  // from generation_config.json
};

// Errors: kNotFound when tokenizer.json is missing, kIoError, and kDataLoss naming file and key.
Result<HfFolder> ReadHfFolder(const std::string& path);

}  // namespace lockstep
