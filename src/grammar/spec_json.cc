#include "grammar/spec_json.h"

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

const char* KindName(GrammarSpec::Kind kind) {
  switch (kind) {
    case GrammarSpec::Kind::kJsonSchema:
      return "json_schema";
    case GrammarSpec::Kind::kRegex:
      return "regex";
    case GrammarSpec::Kind::kChoice:
      return "choice";
    case GrammarSpec::Kind::kLark:
      return "lark";
    case GrammarSpec::Kind::kGbnf:
      return "gbnf";
    case GrammarSpec::Kind::kCalls:
      return "calls";
  }
  return "";
}

}  // namespace

std::string SpecJson(const GrammarSpec& spec) {
  nlohmann::json json;
  json["kind"] = KindName(spec.kind);
  json["text"] = spec.text;
  if (!spec.calls.empty()) {
    json["calls"] = nlohmann::json::array();
    for (const GrammarSpec::Call& call : spec.calls) {
      json["calls"].push_back(
          {{"before", call.before}, {"schema", call.schema}, {"after", call.after}});
    }
    json["many"] = spec.many;
    json["open"] = spec.open;
    json["separator"] = spec.separator;
    json["close"] = spec.close;
  }
  for (const auto& [text, id] : spec.controls) json["controls"].push_back({text, id});
  if (!spec.think_end.empty()) {
    json["think_begin"] = spec.think_begin;
    json["think_end"] = spec.think_end;
    json["think_opened"] = spec.think_opened;
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace lockstep
