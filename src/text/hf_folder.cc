#include "text/hf_folder.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace lockstep {
namespace {

using Json = nlohmann::json;

// The content of a file, or nothing when it does not exist.
Result<std::optional<std::string>> ReadOptionalFile(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::optional<std::string>();
  std::ifstream stream(path, std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream) return IoError("cannot read " + path.string());
  return std::optional<std::string>(std::move(content));
}

// The object in a JSON file; empty when the file does not exist.
Result<Json> ReadOptionalJson(const std::filesystem::path& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> content, ReadOptionalFile(path));
  if (!content) return Json::object();
  Json json = Json::parse(*content, nullptr, false);
  if (!json.is_object()) return DataLoss(path.string() + ": not a JSON object");
  return json;
}

// A token is written as its text or as an object with "content"; null is none.
Result<std::optional<std::string>> TokenField(const Json& json, const std::string& key,
                                              const std::string& file) {
  if (!json.contains(key) || json[key].is_null()) return std::optional<std::string>();
  const Json& value = json[key];
  if (value.is_string()) return std::optional<std::string>(value.get<std::string>());
  if (value.is_object() && value.contains("content") && value["content"].is_string()) {
    return std::optional<std::string>(value["content"].get<std::string>());
  }
  return DataLoss(file + ": " + key + " is not a token", key);
}

// A string, or a list of named templates of which "default" is meant.
Result<std::optional<std::string>> ChatTemplateField(const Json& json, const std::string& file) {
  const std::string key = "chat_template";
  if (!json.contains(key) || json[key].is_null()) return std::optional<std::string>();
  const Json& value = json[key];
  if (value.is_string()) return std::optional<std::string>(value.get<std::string>());
  if (value.is_array()) {
    for (const Json& entry : value) {
      const bool is_default = entry.is_object() && entry.value("name", Json()) == "default";
      if (is_default && entry.contains("template") && entry["template"].is_string()) {
        return std::optional<std::string>(entry["template"].get<std::string>());
      }
    }
  }
  return DataLoss(file + ": " + key + " is neither a string nor a list with a default", key);
}

Status ReadGenerationConfig(const std::filesystem::path& path, HfFolder* folder) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json json, ReadOptionalJson(path));
  if (!json.contains("eos_token_id") || json["eos_token_id"].is_null()) return OkStatus();
  const Json& value = json["eos_token_id"];
  const Json ids = value.is_array() ? value : Json::array({value});
  for (const Json& id : ids) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX) {
      return DataLoss(path.string() + ": eos_token_id is not a token id", "eos_token_id");
    }
    folder->eos_ids.push_back(id.get<TokenId>());
  }
  return OkStatus();
}

// The classes whose add_bos_token decides, whatever the post-processor of tokenizer.json does.
bool HeedsAddBosToken(const Json& config) {
  static const std::set<std::string> kClasses = {"LlamaTokenizer",     "LlamaTokenizerFast",
                                                 "CodeLlamaTokenizer", "CodeLlamaTokenizerFast",
                                                 "GemmaTokenizer",     "GemmaTokenizerFast"};
  const Json& name = config.value("tokenizer_class", Json());
  return name.is_string() && kClasses.contains(name.get<std::string>());
}

Status ReadTokenizerConfig(const std::filesystem::path& path, HfFolder* folder) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json json, ReadOptionalJson(path));
  const std::string file = path.string();
  LOCKSTEP_ASSIGN_OR_RETURN(folder->bos_token, TokenField(json, "bos_token", file));
  LOCKSTEP_ASSIGN_OR_RETURN(folder->eos_token, TokenField(json, "eos_token", file));
  LOCKSTEP_ASSIGN_OR_RETURN(folder->chat_template, ChatTemplateField(json, file));
  const Json& flag = json.value("add_bos_token", Json());
  if (flag.is_boolean() && HeedsAddBosToken(json)) folder->add_bos_token = flag.get<bool>();
  return OkStatus();
}

}  // namespace

Result<HfFolder> ReadHfFolder(const std::string& path) {
  const std::filesystem::path root(path);
  HfFolder folder;
  const std::filesystem::path tokenizer = root / "tokenizer.json";
  LOCKSTEP_ASSIGN_OR_RETURN(std::optional<std::string> content, ReadOptionalFile(tokenizer));
  if (!content) return NotFound(tokenizer.string() + " does not exist");
  folder.tokenizer_json = std::move(*content);

  LOCKSTEP_RETURN_IF_ERROR(ReadTokenizerConfig(root / "tokenizer_config.json", &folder));
  const std::filesystem::path map = root / "special_tokens_map.json";
  LOCKSTEP_ASSIGN_OR_RETURN(const Json special, ReadOptionalJson(map));
  if (!folder.bos_token) {
    LOCKSTEP_ASSIGN_OR_RETURN(folder.bos_token, TokenField(special, "bos_token", map.string()));
  }
  if (!folder.eos_token) {
    LOCKSTEP_ASSIGN_OR_RETURN(folder.eos_token, TokenField(special, "eos_token", map.string()));
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadGenerationConfig(root / "generation_config.json", &folder));

  LOCKSTEP_ASSIGN_OR_RETURN(content, ReadOptionalFile(root / "chat_template.jinja"));
  if (content) folder.chat_template = std::move(content);
  return folder;
}

}  // namespace lockstep
