#include "apps/cli/line_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace lockstep {
namespace {

class LineReaderTest : public testing::Test {
 protected:
  LineReaderTest() {
    EXPECT_EQ(pipe(input_.data()), 0);
    EXPECT_EQ(pipe(interrupt_.data()), 0);
  }
  ~LineReaderTest() override {
    Close();
    for (const int each : {input_[0], interrupt_[0], interrupt_[1]}) close(each);
  }

  void Write(int to, const std::string& text) {
    ASSERT_EQ(write(to, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void Type(const std::string& text) { Write(input_[1], text); }
  void Interrupt() { Write(interrupt_[1], "!"); }
  void Clear() {
    char one;
    ASSERT_EQ(read(interrupt_[0], &one, 1), 1);
  }
  void Close() {
    if (open_) close(input_[1]);
    open_ = false;
  }

  std::array<int, 2> input_;
  std::array<int, 2> interrupt_;
  bool open_ = true;
};

TEST_F(LineReaderTest, SplitsWhatComesAtOnceAndJoinsWhatComesInParts) {
  LineReader reader(input_[0], interrupt_[0]);
  std::string line;
  const std::string large(10000, 'x');
  Type("one\n\n" + large + "\nlast");
  Close();
  for (const std::string& expected :
       {std::string("one"), std::string(), large, std::string("last")}) {
    ASSERT_EQ(reader.Read(&line), LineInput::kLine);
    EXPECT_EQ(line, expected);
  }
  EXPECT_EQ(reader.Read(&line), LineInput::kEnd);
  EXPECT_EQ(reader.Read(&line), LineInput::kEnd);
}

TEST_F(LineReaderTest, AnInterruptThatCameBeforeTheWaitIsSeen) {
  LineReader reader(input_[0], interrupt_[0]);
  std::string line = "untouched";
  Interrupt();
  EXPECT_EQ(reader.Read(&line), LineInput::kInterrupted);
  Type("line\n");
  // Until it is cleared, and before a line that is there.
  EXPECT_EQ(reader.Read(&line), LineInput::kInterrupted);
  EXPECT_EQ(line, "untouched");
  Clear();
  EXPECT_EQ(reader.Read(&line), LineInput::kLine);
  EXPECT_EQ(line, "line");
}

TEST_F(LineReaderTest, WhatCannotBeReadIsTheEnd) {
  LineReader reader(input_[1], interrupt_[0]);  // the end to write to
  std::string line;
  Close();
  EXPECT_EQ(reader.Read(&line), LineInput::kEnd);
}

}  // namespace
}  // namespace lockstep
