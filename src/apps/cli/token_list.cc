#include "apps/cli/token_list.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace lockstep {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  size_t at() const { return at_; }
  bool AtEnd() const { return at_ == text_.size(); }
  // Whether there was any.
  bool SkipSpace() {
    const size_t begin = at_;
    while (!AtEnd() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ > begin;
  }
  bool Take(char c) {
    if (AtEnd() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool TakeId(TokenId* id) {
    if (AtEnd() || std::isdigit(static_cast<unsigned char>(text_[at_])) == 0) return false;
    const char* begin = text_.data();
    const auto [end, error] = std::from_chars(begin + at_, begin + text_.size(), *id);
    if (error != std::errc()) return false;
    at_ = static_cast<size_t>(end - begin);
    return true;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<std::vector<TokenId>> ParseTokenList(std::string_view text, const std::string& where) {
  const auto wrong = [&](std::string_view expected, size_t at) {
    return InvalidArgument(fmt::format("{}: {} expected at byte {}", where, expected, at), where);
  };
  Reader reader(text);
  std::vector<TokenId> ids;
  reader.SkipSpace();
  const bool list = reader.Take('[');
  reader.SkipSpace();
  const auto over = [&] { return list ? reader.Take(']') : reader.AtEnd(); };
  bool done = over();
  while (!done) {
    if (!reader.TakeId(&ids.emplace_back())) return wrong("a token id", reader.at());
    const bool space = reader.SkipSpace();
    if (over()) break;
    if (reader.Take(',')) {
      reader.SkipSpace();
    } else if (!space || list) {
      return wrong(list ? "a comma or a bracket" : "a comma or white space", reader.at());
    }
  }
  reader.SkipSpace();
  if (!reader.AtEnd()) return wrong("the end", reader.at());
  if (ids.empty()) return InvalidArgument(where + ": there are no token ids", where);
  return ids;
}

Result<std::vector<TokenId>> ReadTokenList(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return InvalidArgument(path + " is a folder, not a file of token ids", "tokens-file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound("cannot read " + path, "tokens-file");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return IoError("cannot read " + path);
  return ParseTokenList(text, path);
}

}  // namespace lockstep
