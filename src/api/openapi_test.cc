// The document against the table of routes; tests/e2e checks it against the answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "api/openapi/endpoint.h"
#include "api/routes.h"

namespace lockstep {
namespace {

TEST(OpenApi, HasEveryRouteAndNoOther) {
  std::set<std::string> served;
  for (const Route& route : Routes()) {
    served.insert(std::string(route.method) + " " + std::string(route.path));
  }
  std::set<std::string> said;
  const Json document = OpenApiDocument("1");
  for (const auto& [path, methods] : document["paths"].items()) {
    std::string pattern = path;
    if (const size_t open = pattern.find('{'); open != pattern.npos) {
      pattern.replace(open, pattern.find('}') - open + 1, "*");
    }
    for (const auto& [method, operation] : methods.items()) {
      std::string name = method;
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
      said.insert(name + " " + pattern);
    }
  }
  EXPECT_EQ(said, served);
}

// Every "$ref" below `value` must lead somewhere.
void CheckReferences(const Json& value, const Json& document) {
  if (!value.is_structured()) return;
  for (const auto& [key, below] : value.items()) {
    if (key != "$ref") {
      CheckReferences(below, document);
      continue;
    }
    const std::string path = below.get<std::string>();
    ASSERT_TRUE(path.starts_with('#')) << path;
    EXPECT_TRUE(document.contains(Json::json_pointer(path.substr(1)))) << path;
  }
}

TEST(OpenApi, ReferencesAreThereAndOperationsHaveOneName) {
  const Json document = OpenApiDocument("1");
  CheckReferences(document, document);
  std::set<std::string> names;
  for (const auto& [path, methods] : document["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      EXPECT_TRUE(names.insert(operation["operationId"].get<std::string>()).second) << path;
      EXPECT_TRUE(operation["responses"].contains("503")) << path;
    }
  }
}

}  // namespace
}  // namespace lockstep
