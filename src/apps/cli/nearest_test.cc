#include "apps/cli/nearest.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Nearest, FindsTheWordThatWasMeant) {
  const std::vector<std::string> known = {"--threads", "--host", "--port", "serve", "score"};
  EXPECT_EQ(Nearest("--thread", known), "--threads");
  EXPECT_EQ(Nearest("--prot=80", known), "--port");
  EXPECT_EQ(Nearest("serv", known), "serve");
  EXPECT_EQ(Nearest("--completely-else", known), "");
}

}  // namespace
}  // namespace lockstep
