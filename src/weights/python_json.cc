#include "weights/python_json.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "weights/printable.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

// The JSON parser knows no NaN: each such word goes through it as a string that starts with a zero
// byte, and becomes a number afterwards.
struct Word {
  std::string_view text;
  std::string_view stand_in;  // as JSON text
  std::string_view parsed;    // as the parser hands it out
  double value;
};
using std::string_view_literals::operator""sv;
constexpr std::array<Word, 3> kWords = {{
    {"NaN", R"("\u0000NaN")", "\0NaN"sv, std::numeric_limits<double>::quiet_NaN()},
    {"Infinity", R"("\u0000Infinity")", "\0Infinity"sv, std::numeric_limits<double>::infinity()},
    {"-Infinity", R"("\u0000-Infinity")", "\0-Infinity"sv,
     -std::numeric_limits<double>::infinity()},
}};

// `text` with the words outside strings replaced. Bounds the depth on the way, and with it every
// walk over the document.
Result<std::string> ReplaceWords(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      out += c;
      if (c == '\\' && i + 1 < text.size()) out += text[++i];
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > kMaxJsonDepth) {
      return DataLoss(fmt::format("nests deeper than {} levels", kMaxJsonDepth));
    }
    const Word* found = nullptr;
    if (c == 'N' || c == 'I' || c == '-') {
      for (const Word& word : kWords) {
        if (text.substr(i).starts_with(word.text)) found = &word;
      }
    }
    if (found != nullptr) {
      out += found->stand_in;
      i += found->text.size() - 1;
      continue;
    }
    in_string = c == '"';
    out += c;
  }
  return out;
}

void RestoreWords(Json& value) {
  if (value.is_structured()) {
    for (Json& item : value) RestoreWords(item);
    return;
  }
  if (!value.is_string()) return;
  for (const Word& word : kWords) {
    if (value.get_ref<const std::string&>() == word.parsed) {
      value = word.value;
      return;
    }
  }
}

}  // namespace

Result<Json> ParsePythonJson(std::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string plain, ReplaceWords(text));
  try {
    Json value = Json::parse(plain);
    RestoreWords(value);
    return value;
  } catch (const Json::exception& e) {
    return DataLoss(fmt::format("is not JSON: {}", Printable(e.what())));
  }
}

}  // namespace lockstep
