// Who may ask (API keys) and whose pages may read the answers (cross-origin resource sharing).
// Immutable; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace lockstep {

// The keys of a file, one a line; empty lines and those that begin with '#' are none. Errors name
// the file: it cannot be read, or has no key.
Result<std::vector<std::string>> ReadKeyFile(const std::string& path);

// Errors: a key that no header can carry; the key itself is not in the message.
Status CheckKeys(const std::vector<std::string>& keys);

// Whether a request may pass that has these headers (empty: it has none). A key comes as
// "Authorization: Bearer KEY" or as Anthropic's "x-api-key: KEY". Takes as long for a key that is
// nearly right as for any other of its length. No keys: all may. Errors: kUnauthenticated.
Status CheckAccess(const std::vector<std::string>& keys, std::string_view authorization,
                   std::string_view api_key);

// The key by which such a request passes; empty: by none. Takes its time as CheckAccess does.
std::string_view AcceptedKey(const std::vector<std::string>& keys, std::string_view authorization,
                             std::string_view api_key);

// What Access-Control-Allow-Origin says to a page of `origin`; empty: nothing. `origins`: those
// that are allowed, "*" for all.
std::string AllowedOrigin(const std::vector<std::string>& origins, std::string_view origin);

}  // namespace lockstep
