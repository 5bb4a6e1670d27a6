#include "api/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "api/excerpt.h"

namespace lockstep {
namespace {

// Builds the document from nlohmann's parse events, so that depth and duplicate keys are checked
// before anything deep or ambiguous exists.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Json Take() { return std::move(root_); }
  const std::string& error() const { return error_; }
  const std::string& error_key() const { return error_key_; }
  bool malformed() const { return malformed_; }

  bool null() override { return Place(nullptr); }
  bool boolean(bool value) override { return Place(value); }
  bool number_integer(number_integer_t value) override { return Place(value); }
  bool number_unsigned(number_unsigned_t value) override { return Place(value); }
  bool number_float(number_float_t value, const string_t&) override { return Place(value); }
  bool string(string_t& value) override { return Place(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override { return Open(Json::object()); }
  bool end_object() override {
    Json* object = open_.back();
    open_.pop_back();
    return KeysAreUnique(*object);
  }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool key(string_t& name) override {
    // Appended without ordered_map's linear search; end_object looks for duplicates.
    auto& members = open_.back()->get_ref<Json::object_t&>();
    members.push_back({std::move(name), Json()});
    return true;
  }
  bool parse_error(size_t position, const std::string& last_token,
                   const nlohmann::detail::exception& exception) override {
    const bool overflow =
        std::string_view(exception.what()).find("number overflow") != std::string_view::npos;
    if (overflow)
      return Fail(fmt::format("number {} is out of range", Excerpt(last_token)), LastKey());
    malformed_ = true;
    return Fail(fmt::format("malformed JSON at byte {}", position), {});
  }

 private:
  bool Fail(std::string message, std::string key) {
    error_ = std::move(message);
    error_key_ = std::move(key);
    return false;
  }

  // The key whose value is being read, for messages.
  std::string LastKey() const {
    for (auto it = open_.rbegin(); it != open_.rend(); ++it) {
      if ((*it)->is_object() && !(*it)->empty()) {
        return (*it)->get_ref<const Json::object_t&>().back().first;
      }
    }
    return {};
  }

  Json* Slot() {
    if (open_.empty()) return &root_;
    Json* parent = open_.back();
    if (parent->is_object()) return &parent->get_ref<Json::object_t&>().back().second;
    return &parent->get_ref<Json::array_t&>().emplace_back();
  }
  bool Place(Json value) {
    *Slot() = std::move(value);
    return true;
  }
  bool Open(Json container) {
    if (open_.size() >= kMaxJsonDepth) {
      return Fail(fmt::format("JSON is nested deeper than {} levels", kMaxJsonDepth), LastKey());
    }
    Json* slot = Slot();
    *slot = std::move(container);
    open_.push_back(slot);
    return true;
  }
  bool KeysAreUnique(const Json& object) {
    std::vector<std::string_view> keys;
    for (const auto& member : object.get_ref<const Json::object_t&>()) keys.push_back(member.first);
    std::sort(keys.begin(), keys.end());
    const auto twin = std::adjacent_find(keys.begin(), keys.end());
    if (twin == keys.end()) return true;
    return Fail(fmt::format("key \"{}\" appears twice in one object", Excerpt(*twin)),
                std::string(*twin));
  }

  Json root_;
  std::vector<Json*> open_;  // containers from the root to the one being filled
  std::string error_;
  std::string error_key_;
  bool malformed_ = false;
};

}  // namespace

Result<Json> ParseJson(std::string_view text, bool* malformed) {
  bool ignored = false;
  if (malformed == nullptr) malformed = &ignored;
  *malformed = true;
  if (text.starts_with("\xEF\xBB\xBF")) {
    return InvalidArgument("malformed JSON: it begins with a byte order mark");
  }
  // The parser would take a NUL for the end of the text.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return InvalidArgument(fmt::format("malformed JSON at byte {}", nul + 1));
  }
  Builder builder;
  try {
    if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
      *malformed = builder.malformed();
      return InvalidArgument(builder.error(), builder.error_key());
    }
  } catch (const nlohmann::json::exception&) {
    return InvalidArgument("malformed JSON");
  }
  *malformed = false;
  return builder.Take();
}

Result<Json> ParseJsonObject(std::string_view text) {
  if (text.empty()) return InvalidArgument("the request body is empty; a JSON object is expected");
  LOCKSTEP_ASSIGN_OR_RETURN(Json document, ParseJson(text));
  if (!document.is_object()) return InvalidArgument("the request body must be a JSON object");
  return document;
}

std::string DumpJson(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Json* FindField(const Json& object, std::string_view name) {
  for (const auto& member : object.get_ref<const Json::object_t&>()) {
    if (member.first == name) return member.second.is_null() ? nullptr : &member.second;
  }
  return nullptr;
}

}  // namespace lockstep
