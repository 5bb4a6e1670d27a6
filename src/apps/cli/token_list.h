// Token ids as text: "1,2,3", numbers separated by white space, or a JSON list. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/types.h"

namespace lockstep {

// Between two ids stands one comma, white space, or both; nothing else is skipped. `where` names
// the text (a flag, a file). Errors: kInvalidArgument with the byte at fault; no ids are an error.
Result<std::vector<TokenId>> ParseTokenList(std::string_view text, const std::string& where);

// The same of a file's content. Errors name the file.
Result<std::vector<TokenId>> ReadTokenList(const std::string& path);

}  // namespace lockstep
