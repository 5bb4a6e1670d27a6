#include "server/router.h"

namespace lockstep {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string PercentDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      out += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool Matches(std::string_view pattern, std::string_view path, std::string_view* rest) {
  if (!pattern.ends_with('*')) return pattern == path;
  pattern.remove_suffix(1);
  if (!path.starts_with(pattern) || path.size() == pattern.size()) return false;
  *rest = path.substr(pattern.size());
  return true;
}

}  // namespace

std::string_view TargetPath(std::string_view target) {
  if (!target.starts_with('/')) {
    const size_t scheme = target.find("://");
    if (scheme != std::string_view::npos) {
      const size_t slash = target.find('/', scheme + 3);
      target = slash == std::string_view::npos ? "/" : target.substr(slash);
    }
  }
  return target.substr(0, target.find_first_of("?#"));
}

RouteMatch Router::Find(std::string_view method, std::string_view target) const {
  const std::string_view path = TargetPath(target);
  RouteMatch match;
  for (const Route& route : routes_) {
    std::string_view rest;
    if (!Matches(route.path, path, &rest)) continue;
    if (!match.allow.empty()) match.allow += ", ";
    match.allow += route.method;
    if (route.method == "GET") match.allow += ", HEAD";
    if (method == route.method || (method == "HEAD" && route.method == "GET")) {
      match.route = &route;
      match.rest = PercentDecode(rest);
    }
  }
  if (!match.allow.empty()) match.allow += ", OPTIONS";
  return match;
}

}  // namespace lockstep
