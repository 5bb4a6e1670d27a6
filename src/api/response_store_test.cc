#include "api/response_store.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

using std::chrono::seconds;

class ResponseStoreTest : public ::testing::Test {
 protected:
  ResponseStore Make(size_t max_bytes) {
    ResponseStoreOptions options;
    options.max_bytes = max_bytes;
    options.ttl = seconds(60);
    options.now = [this] { return now_; };
    return ResponseStore(std::move(options));
  }
  static StoredResponse Of(const std::string& id, size_t bytes = 10) {
    return {id, "owner", std::string(bytes, 'x'), "[]"};
  }
  std::chrono::steady_clock::time_point now_{};
};

TEST_F(ResponseStoreTest, IsThereForItsOwnerUntilItIsTooOld) {
  ResponseStore store = Make(1 << 20);
  store.Put(Of("a"));
  ASSERT_NE(store.Find("a", "owner"), nullptr);
  EXPECT_EQ(store.Find("a", "owner")->response, std::string(10, 'x'));
  EXPECT_EQ(store.Find("a", ""), nullptr);
  EXPECT_EQ(store.Find("b", "owner"), nullptr);
  EXPECT_FALSE(store.Erase("a", "another"));
  now_ += seconds(59);
  store.Put(Of("b"));
  EXPECT_NE(store.Find("a", "owner"), nullptr);
  now_ += seconds(1);
  EXPECT_EQ(store.Find("a", "owner"), nullptr);
  EXPECT_NE(store.Find("b", "owner"), nullptr);
  EXPECT_TRUE(store.Erase("b", "owner"));
  EXPECT_FALSE(store.Erase("b", "owner"));
  EXPECT_EQ(store.size(), 0u);
  EXPECT_EQ(store.bytes(), 0u);
}

TEST_F(ResponseStoreTest, TheOneLongestNotUsedGoesFirst) {
  ResponseStore store = Make(40'000);
  for (const char* id : {"a", "b", "c"}) store.Put(Of(id, 10'000));
  EXPECT_NE(store.Find("a", "owner"), nullptr);
  store.Put(Of("d", 10'000));
  EXPECT_EQ(store.Find("b", "owner"), nullptr);
  EXPECT_LE(store.bytes(), 40'000u);
  // One that takes nearly all of it.
  EXPECT_TRUE(store.Fits(Of("e", 39'000)));
  store.Put(Of("e", 39'000));
  EXPECT_EQ(store.size(), 1u);
  EXPECT_FALSE(store.Fits(Of("f", 40'000)));
  // Who holds one keeps it.
  const auto held = store.Find("e", "owner");
  store.Put(Of("g", 39'000));
  EXPECT_EQ(store.Find("e", "owner"), nullptr);
  EXPECT_EQ(held->response.size(), 39'000u);
}

}  // namespace
}  // namespace lockstep
