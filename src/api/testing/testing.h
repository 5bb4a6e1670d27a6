// What the tests of api/ and server/ share: a tokenizer that knows every byte, and a served model
// whose answers a test writes down. Not part of the product.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/served_model.h"
#include "engine/engine.h"
#include "executor/fake/fake_executor.h"
#include "text/tokenizer.h"

namespace lockstep::testing {

// Token b is the byte b; above them the tokens below.
inline constexpr TokenId kImStart = 256;
inline constexpr TokenId kImEnd = 257;  // ends a sequence
inline constexpr TokenId kBos = 258;
inline constexpr int32_t kVocab = 262;  // and "STOP", "Hello", "zq": the one merge there is

// With or without a BOS put before every text.
std::shared_ptr<const Tokenizer> ByteTokenizer(bool adds_bos = false);

struct ModelOptions {
  // What the model says: output token i is script[i], and past its end kImEnd. Empty: what the fake
  // executor's hash says.
  std::vector<TokenId> script;
  FakeOptions fake;  // vocab_size is set
  EngineOptions engine;
  bool adds_bos = false;
  bool with_template = true;
  std::string chat_template;  // empty: ChatML, with tools and tool calls as JSON

  ModelOptions();
};

// The tokens of `text`, one a byte.
std::vector<TokenId> Bytes(std::string_view text);

struct TestModel {
  explicit TestModel(ModelOptions options = {});
  std::unique_ptr<Engine> engine;
  ServedModel served;  // id "test-model", alias "test-alias"
};

}  // namespace lockstep::testing
