// Finds the endpoint of a request in a table of routes. Immutable and thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/endpoint.h"

namespace lockstep {

struct RouteMatch {
  const Route* route = nullptr;  // null: no such path, or not with this method
  std::string rest;              // what a "*" matched, percent-decoded
  std::string query;             // of the target, as it is
  std::string allow;             // the path's methods, comma-separated; empty: no such path
};

class Router {
 public:
  explicit Router(std::span<const Route> routes) : routes_(routes) {}

  // Of the paths that match, the first of the table counts. `target` as in the request line: a path
  // with or without a query, or a whole URL. HEAD finds what GET does.
  RouteMatch Find(std::string_view method, std::string_view target) const;

 private:
  std::span<const Route> routes_;
};

// The path of a request target: without scheme, host, query and fragment.
std::string_view TargetPath(std::string_view target);

}  // namespace lockstep
