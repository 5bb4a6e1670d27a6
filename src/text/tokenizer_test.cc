#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "text/test_vocabularies.h"

namespace lockstep {
namespace {

std::shared_ptr<const Tokenizer> FromGguf(const GgufVocabulary& vocabulary) {
  auto tokenizer = Tokenizer::FromGguf(vocabulary);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  return *tokenizer;
}

std::vector<std::string> Texts(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::vector<std::string> texts;
  for (const TokenId id : ids) texts.emplace_back(tokenizer.TokenText(id));
  return texts;
}

using Strings = std::vector<std::string>;

TEST(Tokenizer, SentencePiece) {
  auto tokenizer = FromGguf(SentencePieceVocabulary());
  EXPECT_TRUE(tokenizer->adds_bos());
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_ids(), std::vector<TokenId>{2});
  EXPECT_EQ(Texts(*tokenizer, *tokenizer->Encode("hello")), (Strings{"<s>", "\u2581hello"}));
  EXPECT_EQ(Texts(*tokenizer, *tokenizer->Encode("h\n", {.add_special = false})),
            (Strings{"\u2581h", "<0x0A>"}));
  // The prefix space comes after every special token; BOS in the text is not doubled.
  EXPECT_EQ(Texts(*tokenizer, *tokenizer->Encode("<s>h</s>h")),
            (Strings{"<s>", "\u2581h", "</s>", "\u2581h"}));
  EXPECT_EQ(Texts(*tokenizer, *tokenizer->Encode("")), Strings{"<s>"});
  EXPECT_EQ(tokenizer->TokenBytes(3 + 0xA1), "\xA1");
  EXPECT_EQ(tokenizer->TokenBytes(*tokenizer->FindToken("\u2581hello")), " hello");
  EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode("hello h")), "hello h");
  EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode("  h")), "  h");
  EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode("h"), {.continuation = true}), " h");
}

TEST(Tokenizer, ByteLevel) {
  auto tokenizer = FromGguf(ByteLevelVocabulary());
  EXPECT_FALSE(tokenizer->adds_bos());
  const Strings expected{"hello", "\u0120hello", "\u0120", "x"};
  EXPECT_EQ(Texts(*tokenizer, *tokenizer->Encode("hello hello x")), expected);
  EXPECT_EQ(Texts(*tokenizer, *tokenizer->Encode("a<|end|>")), (Strings{"a", "<|end|>"}));
  EXPECT_TRUE(tokenizer->IsSpecial(*tokenizer->FindToken("<|end|>")));
  const auto plain = tokenizer->Encode("<|end|>", {.parse_special = false});
  EXPECT_EQ(plain->size(), 7u);
  EXPECT_EQ(tokenizer->Decode(*plain), "<|end|>");
  EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode("a<|end|>b")), "ab");
  EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode("a<|end|>b"), {.skip_special = false}),
            "a<|end|>b");
  EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode("\u6f22")), "\u6f22");
  EXPECT_EQ(tokenizer->eos_ids(), std::vector<TokenId>{*tokenizer->eos_id()});
}

TEST(Tokenizer, IdsOutsideTheVocabularyStandForNothing) {
  auto tokenizer = FromGguf(ByteLevelVocabulary());
  const auto end = static_cast<TokenId>(tokenizer->vocab_size());
  for (const TokenId id : {-1, INT32_MIN, end, INT32_MAX}) {
    EXPECT_EQ(tokenizer->TokenBytes(id), "");
    EXPECT_EQ(tokenizer->TokenText(id), "");
    EXPECT_FALSE(tokenizer->IsSpecial(id));
    EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{id}), "");
  }
}

TEST(Tokenizer, TheLowestIdOfEqualTextsWins) {
  GgufVocabulary v = ByteLevelVocabulary();
  const TokenId first = *FromGguf(v)->FindToken("hello");
  v.tokens.push_back("hello");
  v.token_types.push_back(static_cast<int32_t>(GgufTokenType::kNormal));
  auto tokenizer = FromGguf(v);
  EXPECT_EQ(tokenizer->FindToken("hello"), first);
  EXPECT_EQ(*tokenizer->Encode("hello"), std::vector<TokenId>{first});
  EXPECT_EQ(tokenizer->TokenBytes(static_cast<TokenId>(v.tokens.size() - 1)), "hello");
}

TEST(Tokenizer, TextThatIsNotUtf8IsRefused) {
  auto tokenizer = FromGguf(ByteLevelVocabulary());
  const auto ids = tokenizer->Encode("ab\xA1");
  EXPECT_EQ(ids.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(ids.status().message().find("byte 2"), std::string::npos) << ids.status().ToString();
}

// 1 MiB of one character, for every kind of merging. CPU time, so that a busy machine does not
// matter; a quadratic path would take hours.
TEST(Tokenizer, LongRunsTakeBoundedTime) {
  for (const auto& tokenizer :
       {FromGguf(SentencePieceVocabulary()), FromGguf(ByteLevelVocabulary())}) {
    for (const std::string_view unit : {"a", " ", "\n", "!", "\u6f22", " a", "<|end|>", "1"}) {
      std::string text;
      while (text.size() < (1 << 20)) text += unit;
      text += "x";
      const std::clock_t begin = std::clock();
      const auto ids = tokenizer->Encode(text, {.add_special = false, .parse_special = false});
      ASSERT_TRUE(ids.ok()) << unit << ids.status().ToString();
      EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 60) << unit;
    }
  }
}

TEST(Tokenizer, ThreadsShareOne) {
  auto tokenizer = FromGguf(SentencePieceVocabulary());
  const auto expected = *tokenizer->Encode("hello</s> aaaa", {.parse_special = false});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(*tokenizer->Encode("hello</s> aaaa", {.parse_special = false}), expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void ExpectError(const GgufVocabulary& v, StatusCode code, const std::string& key) {
  const auto tokenizer = Tokenizer::FromGguf(v);
  ASSERT_FALSE(tokenizer.ok()) << key;
  EXPECT_EQ(tokenizer.status().code(), code) << tokenizer.status().ToString();
  EXPECT_NE(tokenizer.status().message().find(key), std::string::npos)
      << tokenizer.status().ToString();
}

TEST(Tokenizer, FaultsOfGgufNameTheKey) {
  const GgufVocabulary bpe = ByteLevelVocabulary();
  const GgufVocabulary spm = SentencePieceVocabulary();
  GgufVocabulary v = bpe;
  v.pre = "no-such";
  ExpectError(v, StatusCode::kUnimplemented, "tokenizer.ggml.pre");
  v.pre = "";
  ExpectError(v, StatusCode::kUnimplemented, "tokenizer.ggml.pre");
  v = bpe;
  v.model = "bert";
  ExpectError(v, StatusCode::kUnimplemented, "tokenizer.ggml.model");
  v = bpe;
  v.tokens.clear();
  ExpectError(v, StatusCode::kDataLoss, "tokenizer.ggml.tokens");
  v = bpe;
  v.tokens[5] = "\xFF\xFE";
  ExpectError(v, StatusCode::kDataLoss, "tokenizer.ggml.tokens");
  v = bpe;
  v.token_types.pop_back();
  ExpectError(v, StatusCode::kDataLoss, "tokenizer.ggml.token_type");
  v = bpe;
  v.merges.clear();
  ExpectError(v, StatusCode::kDataLoss, "tokenizer.ggml.merges");
  v = bpe;
  for (const char* merge : {"ab", "", " ", "h ", "zz yy", "h e x"}) {
    v.merges = {merge};
    ExpectError(v, StatusCode::kDataLoss, "tokenizer.ggml.merges");
  }
  v = bpe;
  v.add_bos = true;
  v.bos_id.reset();
  ExpectError(v, StatusCode::kDataLoss, "tokenizer.ggml.bos_token_id");
  v = bpe;
  v.eos_id = 1 << 20;
  ExpectError(v, StatusCode::kDataLoss, "tokenizer.ggml.eos_token_id");
  v = spm;
  v.scores.clear();
  ExpectError(v, StatusCode::kDataLoss, "tokenizer.ggml.scores");
  v = spm;
  v.scores[260] = std::numeric_limits<float>::quiet_NaN();
  ExpectError(v, StatusCode::kDataLoss, "tokenizer.ggml.scores");
}

constexpr char kTokenizerJson[] = R"({"version":"1.0","truncation":null,"padding":null,
"added_tokens":[{"id":4,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},
{"id":5,"content":"<e>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
"normalizer":null,
"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\p{L}+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]},
"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{"<s>":{"id":"<s>","ids":[4],"tokens":["<s>"]}}},
"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},
"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":false,"vocab":{"a":0,"b":1,"ab":2,"Ġ":3},"merges":[["a","b"]]}})";

TEST(Tokenizer, TokenizerJson) {
  auto tokenizer = Tokenizer::FromTokenizerJson(kTokenizerJson);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  EXPECT_EQ(*(*tokenizer)->Encode("ab ba"), (std::vector<TokenId>{4, 2, 3, 1, 0}));
  EXPECT_EQ(*(*tokenizer)->Encode("<s>ab"), (std::vector<TokenId>{4, 2}));
  EXPECT_EQ((*tokenizer)->bos_id(), 4);
  EXPECT_TRUE((*tokenizer)->adds_bos());
  EXPECT_EQ((*tokenizer)->Decode(*(*tokenizer)->Encode("ab ba")), "ab ba");
}

// Every prefix of the file, and every byte of it overwritten: an error or a tokenizer, no crash.
TEST(Tokenizer, DamagedTokenizerJson) {
  const std::string json = kTokenizerJson;
  for (size_t size = 0; size < json.size(); ++size) {
    const auto tokenizer = Tokenizer::FromTokenizerJson(json.substr(0, size));
    ASSERT_FALSE(tokenizer.ok());
    EXPECT_EQ(tokenizer.status().code(), StatusCode::kDataLoss) << tokenizer.status().ToString();
  }
  for (size_t at = 0; at < json.size(); ++at) {
    for (const char c : {'9', '"', '\xFF'}) {
      std::string damaged = json;
      damaged[at] = c;
      const auto tokenizer = Tokenizer::FromTokenizerJson(damaged);
      if (tokenizer.ok()) (void)(*tokenizer)->Encode("ab <e> ba\n");
    }
  }
}

class HfFolder : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/lockstep_hf_folder";
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    Write("tokenizer.json", kTokenizerJson);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  void Write(const std::string& name, const std::string& content) {
    std::ofstream(path_ + "/" + name) << content;
  }
  std::string path_;
};

TEST_F(HfFolder, ConfigsAreUnited) {
  Write("tokenizer_config.json",
        R"({"bos_token":{"content":"<s>"},"eos_token":"<e>","chat_template":"hi"})");
  Write("generation_config.json", R"({"eos_token_id":[5,2]})");
  auto tokenizer = Tokenizer::FromHfFolder(path_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  EXPECT_EQ((*tokenizer)->eos_id(), 5);
  EXPECT_EQ((*tokenizer)->eos_ids(), (std::vector<TokenId>{2, 5}));
  EXPECT_EQ((*tokenizer)->bos_text(), "<s>");
  EXPECT_EQ((*tokenizer)->chat_template(), "hi");
}

TEST_F(HfFolder, AddBosTokenOfTheLlamaClassDecides) {
  Write("tokenizer_config.json",
        R"({"bos_token":"<s>","tokenizer_class":"LlamaTokenizer","add_bos_token":false})");
  auto tokenizer = Tokenizer::FromHfFolder(path_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  EXPECT_EQ(*(*tokenizer)->Encode("ab"), std::vector<TokenId>{2});
  EXPECT_FALSE((*tokenizer)->adds_bos());
}

TEST_F(HfFolder, FaultsNameTheFile) {
  Write("generation_config.json", R"({"eos_token_id":"x"})");
  EXPECT_NE(Tokenizer::FromHfFolder(path_).status().message().find("generation_config.json"),
            std::string::npos);
  Write("generation_config.json", "{}");
  Write("tokenizer_config.json", R"({"bos_token":"<none>"})");
  EXPECT_EQ(Tokenizer::FromHfFolder(path_).status().param(), "bos_token");
  Write("tokenizer_config.json", "[");
  EXPECT_EQ(Tokenizer::FromHfFolder(path_).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(Tokenizer::FromHfFolder(path_ + "/none").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace lockstep
