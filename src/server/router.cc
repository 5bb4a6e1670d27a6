#include "server/router.h"

#include "api/query.h"

namespace lockstep {
namespace {

bool Matches(std::string_view pattern, std::string_view path, std::string_view* rest) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == path;
  const std::string_view begin = pattern.substr(0, star);
  const std::string_view end = pattern.substr(star + 1);
  if (path.size() < pattern.size() || !path.starts_with(begin) || !path.ends_with(end)) {
    return false;
  }
  *rest = path.substr(star, path.size() - begin.size() - end.size());
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
  if (const size_t mark = target.find('?'); mark != target.npos) {
    match.query = target.substr(mark + 1, target.find('#', mark) - mark - 1);
  }
  std::string_view found;
  for (const Route& route : routes_) {
    std::string_view rest;
    if (!Matches(route.path, path, &rest) || (!found.empty() && route.path != found)) continue;
    found = route.path;
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
