// Follows grammars of JSON schemas over a real vocabulary and times what each token costs: lines of
// JSON {"name", "schema"} come in, a line {"name", "compile_ms", "refused" or "text", "whole",
// "mask_us"} goes out for each. Tokens are drawn at random from the mask, those that close what is
// open more often the longer it gets; the seed is the line's number.
//
//   mask_bench VOCABULARY.gguf < schemas.jsonl > answers.jsonl
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "apps/common/gguf_vocabulary_from_file.h"
#include "grammar/grammar.h"
#include "text/tokenizer.h"
#include "weights/gguf.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostTokens = 400;
constexpr int kFreeTokens = 40;  // before closing is preferred

template <typename T>
T OrDie(Result<T> result) {
  if (!result.ok()) {
    std::cerr << "mask_bench: " << result.status().ToString() << "\n";
    std::exit(1);
  }
  return std::move(result).value();
}

double MicrosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

class Bench {
 public:
  explicit Bench(const std::string& file) {
    const auto gguf = OrDie(GgufFile::Open(file));
    const GgufVocabulary vocabulary = OrDie(GgufVocabularyFromMetadata(gguf->metadata()));
    tokenizer_ = OrDie(Tokenizer::FromGguf(vocabulary));
    size_ = static_cast<int32_t>(vocabulary.tokens.size());
    eos_ = vocabulary.eos_id.value_or(-1);
    for (TokenId id = 0; id < size_; ++id) {
      const std::string_view bytes = tokenizer_->TokenBytes(id);
      closes_.push_back(!bytes.empty() &&
                        std::string_view("\"}]").find(bytes[0]) != std::string_view::npos);
    }
    compiler_ = std::make_unique<GrammarCompiler>(tokenizer_, size_, std::vector<TokenId>{eos_});
    // The first prepares the vocabulary.
    OrDie(compiler_->Compile({.text = "{}"}));
  }

  nlohmann::json Run(const nlohmann::json& line, uint64_t seed) {
    nlohmann::json answer = {{"name", line["name"]}};
    const auto begin = Clock::now();
    const auto grammar = compiler_->Compile({.text = line["schema"].dump()});
    answer["compile_ms"] = MicrosecondsSince(begin) / 1e3;
    if (!grammar.ok()) {
      answer["refused"] = grammar.status().ToString();
      return answer;
    }
    auto matcher = OrDie((*grammar)->Start());
    std::mt19937_64 random(seed);
    std::string text;
    bool whole = false;
    std::vector<double> times;
    for (int n = 0; n < kMostTokens && !whole; ++n) {
      const TokenId token = Draw(matcher->mask(), n, &random);
      whole = token == eos_;
      if (whole) break;
      text += tokenizer_->TokenBytes(token);
      const auto start = Clock::now();
      const Status status = matcher->Accept(token);
      matcher->FillMask();
      times.push_back(MicrosecondsSince(start));
      if (!status.ok()) {
        answer["failed"] = status.ToString();
        break;
      }
      whole = matcher->complete();
    }
    answer.update({{"text", text}, {"whole", whole}, {"mask_us", times}});
    return answer;
  }

 private:
  TokenId Draw(std::span<const uint32_t> mask, int n, std::mt19937_64* random) const {
    std::vector<TokenId> all, closing;
    for (TokenId id = 0; id < size_; ++id) {
      if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) == 0) continue;
      if (id == eos_) return id;
      all.push_back(id);
      if (closes_[static_cast<size_t>(id)]) closing.push_back(id);
    }
    const bool close = n >= kFreeTokens && !closing.empty() && (*random)() % 8 != 0;
    const std::vector<TokenId>& from = close ? closing : all;
    if (from.empty()) return eos_;
    return from[(*random)() % from.size()];
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  int32_t size_ = 0;
  TokenId eos_ = -1;
  std::vector<bool> closes_;
  std::unique_ptr<GrammarCompiler> compiler_;
};

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: mask_bench VOCABULARY.gguf < schemas.jsonl\n";
    return 2;
  }
  lockstep::Bench bench(argv[1]);
  uint64_t number = 0;
  for (std::string line; std::getline(std::cin, line); ++number) {
    const auto replace = nlohmann::json::error_handler_t::replace;
    const nlohmann::json answer = bench.Run(nlohmann::json::parse(line), number);
    std::cout << answer.dump(-1, ' ', false, replace) << "\n" << std::flush;
  }
}
