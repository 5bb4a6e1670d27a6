#include "engine/bounded_sink.h"

#include <gtest/gtest.h>

#include <semaphore>
#include <thread>

namespace lockstep {
namespace {

GenerationEvent Event(TokenId id, std::string text) {
  GenerationEvent event;
  event.text = std::move(text);
  event.tokens.push_back({id, {}, {}});
  return event;
}

TEST(BoundedSink, MergesWhatTheConsumerHasNotTaken) {
  int readable = 0;
  BoundedSink sink(9, [&] { ++readable; }, [] {});
  EXPECT_FALSE(sink.Pop());
  EXPECT_EQ(sink.Offer(Event(1, "a")), EventSink::Answer::kReady);
  EXPECT_EQ(sink.Offer(Event(2, "b")), EventSink::Answer::kReady);
  GenerationEvent last;
  last.end.emplace();
  EXPECT_EQ(sink.Offer(std::move(last)), EventSink::Answer::kReady);
  EXPECT_EQ(readable, 1);
  const auto event = sink.Pop();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->text, "ab");
  ASSERT_EQ(event->tokens.size(), 2u);
  EXPECT_EQ(event->tokens[1].id, 2);
  EXPECT_TRUE(event->end);
  EXPECT_FALSE(sink.Pop());
}

TEST(BoundedSink, IsFullAtItsCapacityAndWakesOnceDrained) {
  int woken = 0;
  BoundedSink sink(2, [] {}, [&] { ++woken; });
  EXPECT_EQ(sink.Offer(Event(1, "a")), EventSink::Answer::kReady);
  EXPECT_TRUE(sink.ready());
  EXPECT_EQ(sink.Offer(Event(2, "b")), EventSink::Answer::kFull);
  EXPECT_FALSE(sink.ready());
  EXPECT_EQ(woken, 0);
  EXPECT_EQ(sink.Pop()->text, "ab");
  EXPECT_EQ(woken, 1);
  EXPECT_TRUE(sink.ready());
  EXPECT_EQ(sink.Offer(Event(3, "c")), EventSink::Answer::kReady);
  EXPECT_EQ(sink.Pop()->text, "c");
  EXPECT_EQ(woken, 1);
}

TEST(BoundedSink, ClosingAFullSinkWakesAndRefuses) {
  int woken = 0;
  BoundedSink sink(1, [] {}, [&] { ++woken; });
  EXPECT_EQ(sink.Offer(Event(1, "a")), EventSink::Answer::kFull);
  sink.Close();
  EXPECT_EQ(woken, 1);
  EXPECT_TRUE(sink.ready());
  EXPECT_FALSE(sink.Pop());
  EXPECT_EQ(sink.Offer(Event(2, "b")), EventSink::Answer::kClosed);
}

TEST(BoundedSink, AConsumerOnAnotherThreadSeesEverythingInOrder) {
  std::counting_semaphore<> readable(0);
  std::counting_semaphore<> drained(0);
  BoundedSink sink(4, [&] { readable.release(); }, [&] { drained.release(); });
  constexpr int kEvents = 5000;
  std::thread producer([&] {
    for (int i = 0; i < kEvents; ++i) {
      if (sink.Offer(Event(i, "x")) == EventSink::Answer::kFull) drained.acquire();
    }
    GenerationEvent last;
    last.end.emplace();
    sink.Offer(std::move(last));
  });
  std::vector<TokenId> ids;
  for (bool ended = false; !ended;) {
    readable.acquire();
    const auto event = sink.Pop();
    ASSERT_TRUE(event);
    EXPECT_LE(event->tokens.size(), 4u);
    for (const TokenEvent& token : event->tokens) ids.push_back(token.id);
    ended = event->end.has_value();
  }
  producer.join();
  ASSERT_EQ(ids.size(), static_cast<size_t>(kEvents));
  for (int i = 0; i < kEvents; ++i) EXPECT_EQ(ids[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace lockstep
