#include "api/structured_output.h"

#include <fmt/format.h>

#include <utility>

#include "api/excerpt.h"
#include "api/fields.h"
#include "api/generation_fields.h"

namespace lockstep {
namespace {

using Kind = GrammarSpec::Kind;
constexpr size_t kMaxPathBytes = 300;
constexpr const char* kAnyObject = "{\"type\":\"object\"}";

StructuredOutput Make(Kind kind, std::string text, std::string path) {
  StructuredOutput output;
  output.spec.kind = kind;
  output.spec.text = std::move(text);
  output.path = std::move(path);
  return output;
}

// A schema as an object, or as the text of one.
Result<StructuredOutput> Schema(const Json& value, const std::string& path) {
  if (value.is_object() || value.is_boolean()) {
    return Make(Kind::kJsonSchema, DumpJson(value), path);
  }
  if (!value.is_string()) return WrongType(path, "a JSON schema", value);
  const Result<Json> parsed = ParseJson(value.get_ref<const std::string&>());
  if (!parsed.ok()) {
    return InvalidArgument(fmt::format("'{}': {}", path, parsed.status().message()), path);
  }
  if (!parsed->is_object() && !parsed->is_boolean())
    return WrongType(path, "a JSON schema", *parsed);
  return Make(Kind::kJsonSchema, DumpJson(*parsed), path);
}

Result<StructuredOutput> Regex(const Json& value, const std::string& path) {
  if (!value.is_string()) return WrongType(path, "a string", value);
  return Make(Kind::kRegex, value.get<std::string>(), path);
}

Result<StructuredOutput> Choice(const Json& value, const std::string& path) {
  if (!value.is_array()) return WrongType(path, "an array of strings", value);
  for (size_t i = 0; i < value.size(); ++i) {
    if (!value[i].is_string())
      return WrongType(fmt::format("{}[{}]", path, i), "a string", value[i]);
  }
  return Make(Kind::kChoice, DumpJson(value), path);
}

// GBNF defines a rule with "::=", Lark with ":".
Result<StructuredOutput> GrammarText(const Json& value, const std::string& path) {
  if (!value.is_string()) return WrongType(path, "a string", value);
  const std::string& text = value.get_ref<const std::string&>();
  const bool gbnf = text.find("::=") != std::string::npos;
  return Make(gbnf ? Kind::kGbnf : Kind::kLark, text, path);
}

struct Reader {
  const char* name;
  Result<StructuredOutput> (*read)(const Json& value, const std::string& path);
};

constexpr Reader kTopLevel[] = {{"guided_json", Schema},   {"guided_regex", Regex},
                                {"guided_choice", Choice}, {"guided_grammar", GrammarText},
                                {"grammar", GrammarText},  {"json_schema", Schema}};
constexpr Reader kWithin[] = {
    {"json", Schema}, {"regex", Regex}, {"choice", Choice}, {"grammar", GrammarText}};

constexpr UnsupportedField kUnsupportedWithin[] = {
    {"structural_tag", nullptr},
    {"whitespace_pattern", nullptr},
    {"disable_any_whitespace", "false"},
    {"disable_additional_properties", "false"},
};

Status Add(Result<StructuredOutput> output, std::optional<StructuredOutput>* found) {
  if (!output.ok()) return output.status();
  if (*found) {
    return InvalidArgument(fmt::format("'{}' and '{}' cannot both say what the answer looks like",
                                       (*found)->path, output->path),
                           output->path);
  }
  *found = std::move(output).value();
  return OkStatus();
}

Status ReadWithin(const Json& body, std::optional<StructuredOutput>* found) {
  const std::string name = "structured_outputs";
  const Json* object = FindField(body, name);
  if (object == nullptr) return OkStatus();
  if (!object->is_object()) return WrongType(name, "an object", *object);
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnsupported(*object, kUnsupportedWithin));
  for (const Reader& reader : kWithin) {
    const Json* value = FindField(*object, reader.name);
    if (value == nullptr) continue;
    LOCKSTEP_RETURN_IF_ERROR(Add(reader.read(*value, name + "." + reader.name), found));
  }
  bool any_object = false;
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(*object, "json_object", &any_object));
  if (any_object) {
    LOCKSTEP_RETURN_IF_ERROR(
        Add(Make(Kind::kJsonSchema, kAnyObject, name + ".json_object"), found));
  }
  if (!*found) {
    return InvalidArgument(
        fmt::format("'{}' must hold one of json, regex, choice, grammar and json_object", name),
        name);
  }
  return OkStatus();
}

// `inner` has the schema and what it is called.
Result<StructuredOutput> ReadJsonSchema(const Json* inner, const std::string& path) {
  if (inner == nullptr) return Missing(path);
  if (!inner->is_object()) return WrongType(path, "an object", *inner);
  std::string ignored;
  for (const char* name : {"name", "description"}) {
    LOCKSTEP_RETURN_IF_ERROR(ReadString(*inner, name, &ignored));
  }
  bool strict = false;
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(*inner, "strict", &strict));
  const Json* schema = FindField(*inner, "schema");
  if (schema == nullptr) return Missing(path + ".schema");
  return Schema(*schema, path + ".schema");
}

// `flat`: the schema stands in the format itself, not in its json_schema.
Status ReadFormat(const Json* format, const std::string& name, bool flat,
                  std::optional<StructuredOutput>* found) {
  if (format == nullptr) return OkStatus();
  if (!format->is_object()) return WrongType(name, "an object", *format);
  const Json* type = FindField(*format, "type");
  if (type == nullptr) return Missing(name + ".type");
  if (!type->is_string()) return WrongType(name + ".type", "a string", *type);
  if (*type == "text") return OkStatus();
  if (*type == "json_schema") {
    const Json* inner = flat ? format : FindField(*format, "json_schema");
    return Add(ReadJsonSchema(inner, flat ? name : name + ".json_schema"), found);
  }
  if (*type == "json_object") {
    const Json* schema = FindField(*format, "schema");
    if (schema != nullptr) return Add(Schema(*schema, name + ".schema"), found);
    return Add(Make(Kind::kJsonSchema, kAnyObject, name), found);
  }
  return Unimplemented(
      fmt::format("'{}.type' is \"{}\"; text, json_object and json_schema are supported", name,
                  Excerpt(type->get_ref<const std::string&>())),
      name + ".type");
}

// The fields of vLLM and llama-server, after an API's own.
Result<std::optional<StructuredOutput>> ReadOthers(const Json& body,
                                                   std::optional<StructuredOutput> found) {
  for (const Reader& reader : kTopLevel) {
    const Json* value = FindField(body, reader.name);
    if (value == nullptr) continue;
    LOCKSTEP_RETURN_IF_ERROR(Add(reader.read(*value, reader.name), &found));
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadWithin(body, &found));
  return found;
}

}  // namespace

Result<std::optional<StructuredOutput>> ReadStructuredOutput(const Json& body) {
  std::optional<StructuredOutput> found;
  LOCKSTEP_RETURN_IF_ERROR(
      ReadFormat(FindField(body, "response_format"), "response_format", /*flat=*/false, &found));
  return ReadOthers(body, std::move(found));
}

Result<std::optional<StructuredOutput>> ReadStructuredText(const Json& body) {
  std::optional<StructuredOutput> found;
  if (const Json* text = FindField(body, "text")) {
    if (!text->is_object()) return WrongType("text", "an object", *text);
    LOCKSTEP_RETURN_IF_ERROR(
        ReadFormat(FindField(*text, "format"), "text.format", /*flat=*/true, &found));
  }
  return ReadOthers(body, std::move(found));
}

Result<std::shared_ptr<const Grammar>> CompileGrammar(const StructuredOutput& output,
                                                      const ServedModel& model) {
  auto grammar = model.grammars->Compile(output.spec);
  if (grammar.ok()) return grammar;
  return AtField(grammar.status(), output.path);
}

Status AtField(const Status& status, std::string path) {
  if (!status.param().empty()) {
    if (!status.param().starts_with('[')) path += '.';
    path += status.param();
  }
  path = Excerpt(path, kMaxPathBytes);
  return Status(status.code(), fmt::format("'{}': {}", path, status.message()), path);
}

}  // namespace lockstep
