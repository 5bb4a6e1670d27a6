#include "server/access.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace lockstep {
namespace {

// The scheme's name is of any case (RFC 9110, 11.1).
std::string_view BearerOf(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size()) return {};
  for (size_t i = 0; i < kScheme.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(authorization[i])) != kScheme[i]) return {};
  }
  authorization.remove_prefix(kScheme.size());
  authorization.remove_prefix(std::min(authorization.find_first_not_of(' '), authorization.size()));
  return authorization;
}

// Looks at all of `given`, wherever it differs.
bool IsKey(std::string_view key, std::string_view given) {
  volatile unsigned different = key.size() == given.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    different = different | static_cast<unsigned>(given[i] ^ key[i % key.size()]);
  }
  return different == 0;
}

bool IsOneOf(const std::vector<std::string>& keys, std::string_view given) {
  bool found = false;
  for (const std::string& key : keys) found = IsKey(key, given) || found;
  return found;
}

}  // namespace

Result<std::vector<std::string>> ReadKeyFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return InvalidArgument(path + ": " + std::strerror(errno), "api-key-file");
  std::vector<std::string> keys;
  std::string line;
  while (std::getline(file, line)) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    if (!line.empty() && line.front() != '#') keys.push_back(line);
  }
  if (keys.empty()) return InvalidArgument(path + ": there is no key in it", "api-key-file");
  if (const Status status = CheckKeys(keys); !status.ok()) {
    return InvalidArgument(path + ": " + status.message(), "api-key-file");
  }
  return keys;
}

Status CheckKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const bool fits = !key.empty() && std::all_of(key.begin(), key.end(),
                                                  [](char c) { return c > ' ' && c < 0x7F; });
    if (!fits) {
      return InvalidArgument("a key is one or more printable ASCII characters without spaces",
                             "api-key");
    }
  }
  return OkStatus();
}

Status CheckAccess(const std::vector<std::string>& keys, std::string_view authorization,
                   std::string_view api_key) {
  if (keys.empty()) return OkStatus();
  const std::string_view bearer = BearerOf(authorization);
  if (bearer.empty() && api_key.empty()) {
    return Unauthenticated(
        "an API key is needed: send it as 'Authorization: Bearer KEY' or as 'x-api-key: KEY'");
  }
  const bool by_bearer = IsOneOf(keys, bearer);
  if (IsOneOf(keys, api_key) || by_bearer) return OkStatus();
  return Unauthenticated("the API key is not one of this server's");
}

std::string_view AcceptedKey(const std::vector<std::string>& keys, std::string_view authorization,
                             std::string_view api_key) {
  const std::string_view bearer = BearerOf(authorization);
  const bool by_bearer = IsOneOf(keys, bearer);
  if (IsOneOf(keys, api_key) && !by_bearer) return api_key;
  return by_bearer ? bearer : std::string_view();
}

std::string AllowedOrigin(const std::vector<std::string>& origins, std::string_view origin) {
  if (origin.empty()) return {};
  for (const std::string& allowed : origins) {
    if (allowed == "*") return "*";
    if (allowed == origin) return allowed;
  }
  return {};
}

}  // namespace lockstep
