#include "grammar/grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/gguf_vocabulary.h"

namespace lockstep {
namespace {

using Kind = GrammarSpec::Kind;

// One token a byte of ASCII and of UTF-8's lead and tail bytes, then the tokens below.
constexpr TokenId kEnd = 256;
constexpr TokenId kUnused = 257;      // a control token
constexpr TokenId kBraceQuote = 258;  // {"
constexpr TokenId kFence = 259;       // ```json
constexpr int32_t kVocab = 270;       // the model's: larger than the tokenizer's

std::string Utf8(uint32_t code_point) {
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xC0 | (code_point >> 6)),
          static_cast<char>(0x80 | (code_point & 0x3F))};
}

std::shared_ptr<const Tokenizer> MakeTokenizer() {
  GgufVocabulary v;
  v.model = "gpt2";
  v.pre = "gpt-2";
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    v.tokens.push_back(Utf8(printable ? byte : next++));
  }
  for (const char* text : {"<|end|>", "<|unused|>", "{\"", "```json"}) v.tokens.push_back(text);
  v.token_types.assign(v.tokens.size(), static_cast<int32_t>(GgufTokenType::kNormal));
  for (const TokenId id : {kEnd, kUnused}) {
    v.token_types[static_cast<size_t>(id)] = static_cast<int32_t>(GgufTokenType::kControl);
  }
  v.merges = {"{ \""};
  v.eos_id = kEnd;
  v.add_bos = false;
  auto tokenizer = Tokenizer::FromGguf(v);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  return std::move(tokenizer).value();
}

GrammarCompiler& Compiler() {
  static GrammarCompiler compiler(MakeTokenizer(), kVocab, {kEnd});
  return compiler;
}

GrammarSpec Of(Kind kind, std::string text) {
  GrammarSpec spec;
  spec.kind = kind;
  spec.text = std::move(text);
  return spec;
}

std::unique_ptr<TokenMatcher> Start(const GrammarSpec& spec) {
  auto grammar = Compiler().Compile(spec);
  EXPECT_TRUE(grammar.ok()) << spec.text << ": " << grammar.status().ToString();
  if (!grammar.ok()) return nullptr;
  auto matcher = (*grammar)->Start();
  EXPECT_TRUE(matcher.ok()) << matcher.status().ToString();
  return std::move(matcher).value();
}

bool Allows(const TokenMatcher& matcher, TokenId token) {
  const auto t = static_cast<size_t>(token);
  return !matcher.complete() && (matcher.mask()[t / 32] >> (t % 32) & 1) != 0;
}

Status Take(TokenMatcher* matcher, TokenId token) {
  const Status status = matcher->Accept(token);
  matcher->FillMask();
  return status;
}

// Writes `text` byte by byte; false at the first byte that is not allowed.
bool Write(TokenMatcher* matcher, std::string_view text) {
  for (const char c : text) {
    const auto token = static_cast<TokenId>(static_cast<uint8_t>(c));
    if (!Allows(*matcher, token)) return false;
    EXPECT_TRUE(Take(matcher, token).ok());
  }
  return true;
}

// Whether `text` is a whole answer.
bool Takes(const GrammarSpec& spec, std::string_view text) {
  auto matcher = Start(spec);
  if (matcher == nullptr || !Write(matcher.get(), text)) return false;
  return matcher->complete() || Allows(*matcher, kEnd);
}

void ExpectSchema(const std::string& schema, const std::vector<std::string>& valid,
                  const std::vector<std::string>& invalid) {
  const GrammarSpec spec = Of(Kind::kJsonSchema, schema);
  for (const std::string& text : valid) EXPECT_TRUE(Takes(spec, text)) << schema << " " << text;
  for (const std::string& text : invalid) EXPECT_FALSE(Takes(spec, text)) << schema << " " << text;
}

void ExpectRefused(const GrammarSpec& spec, std::string_view param, std::string_view word) {
  const auto grammar = Compiler().Compile(spec);
  ASSERT_FALSE(grammar.ok()) << spec.text.substr(0, 200);
  EXPECT_EQ(grammar.status().code(), StatusCode::kInvalidArgument) << grammar.status().ToString();
  EXPECT_EQ(grammar.status().param(), param) << grammar.status().ToString();
  EXPECT_NE(grammar.status().message().find(word), std::string::npos)
      << grammar.status().ToString();
}

TEST(Grammar, Case24PatternIsEnforced) {
  ExpectSchema(R"({"type":"string","pattern":"^hello there\\!$"})", {R"("hello there!")"},
               {R"("hello there")", R"("hello there!!")", "hello", R"({"a":1})"});
}

TEST(Grammar, Case24WhatCannotBeEnforcedIsRefusedWithItsPath) {
  const struct {
    const char* schema;
    const char* param;
    const char* keyword;
  } kCases[] = {
      {R"({"not":{"type":"string"}})", "not", "not"},
      {R"({"properties":{"a":{"type":"array","uniqueItems":true}}})", "properties.a.uniqueItems",
       "uniqueItems"},
      {R"({"anyOf":[{"type":"null"},{"if":{},"then":{}}]})", "anyOf[1].if", "if"},
      {R"({"items":{"contains":{"const":1}}})", "items.contains", "contains"},
      {R"({"$defs":{"x":{"propertyNames":{"maxLength":3}}},"$ref":"#/$defs/x"})",
       "$defs.x.propertyNames", "propertyNames"},
      {R"({"properties":{"a":{"$ref":"https://example.com/x.json"}}})", "properties.a.$ref",
       "$ref"},
      {R"({"properties":{"a":{"type":"string","format":"no-such"}}})", "properties.a.format",
       "format"},
      {R"({"properties":{"a":{"type":"string","pattern":"(?<=x)*"}}})", "properties.a.pattern",
       "pattern"},
      {R"({"properties":{"a":{"type":"string","pattern":"(?=x)y"}}})", "properties.a.pattern",
       "pattern"},
      {R"({"dependencies":{"a":["b"]}})", "dependencies", "dependencies"},
      {R"({"oneOf":[{"type":"number"},{"type":"integer"}]})", "oneOf", "oneOf"},
      {R"({"$ref":"#/$defs/none"})", "$ref", "none"},
      {R"({"type":"string","minLength":"3"})", "minLength", "minLength"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.schema);
    ExpectRefused(Of(Kind::kJsonSchema, c.schema), c.param, c.keyword);
  }
}

TEST(Grammar, OptionsOfTheLibraryCannotBeSetFromOutside) {
  ExpectRefused(Of(Kind::kJsonSchema,
                   R"({"x-guidance":{"lenient":true},"type":"string","format":"no-such"})"),
                "format", "no-such");
  ExpectRefused(Of(Kind::kLark, "start: %json {\"x-guidance\":{\"lenient\":true}}"), "",
                "x-guidance");
}

TEST(Grammar, Case25EnumThroughReference) {
  ExpectSchema(
      R"({"type":"array","minItems":3,"maxItems":3,"items":{"type":"object","required":["c"],)"
      R"("properties":{"c":{"$ref":"#/$defs/C"}}},"$defs":{"C":{"enum":["Alice","Biff"]}}})",
      {R"([{"c":"Alice"},{"c":"Biff"},{"c":"Alice"}])"},
      {R"([{"c":"Alice"}])", R"([{"c":{}},{"c":"Biff"},{"c":"Alice"}])", R"([{"c":"Bob"},)", "[]"});
}

TEST(Grammar, Case26NumericRanges) {
  ExpectSchema(R"({"type":"integer","minimum":3})", {"3", "4", "10", "30", "123456"},
               {"01", "03", "2", "0", "-3", "-0", "3.5", "3e"});
  ExpectSchema(R"({"minimum":-123,"maximum":42,"type":"integer"})", {"-123", "42", "0", "-1"},
               {"-124", "43", "100", "-00", "042"});
  ExpectSchema(R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})",
               {"0.5", "0.001", "0.999"}, {"0", "1", "-0.5", "1.5", "00.5"});
  ExpectSchema(R"({"type":"integer","exclusiveMinimum":3,"exclusiveMaximum":5})", {"4"},
               {"3", "5", "04"});
  // No double is 2^63 - 1; the next larger one must not become the bound.
  ExpectSchema(R"({"type":"integer","maximum":9223372036854775807})", {"9223372036854774784"},
               {"9223372036854775808", "9223372036854775807000"});
}

TEST(Grammar, Case27AdditionalProperties) {
  const std::string head = R"({"type":"object","properties":{"number":{"type":"number"}})";
  ExpectSchema(head + R"(,"additionalProperties":true})",
               {"{}", R"({"number":1})", R"({"number":1,"x":[null]})", R"({"x":"y"})"},
               {R"({"number":"a"})", R"({"number":1,"number":"a"})"});
  ExpectSchema(head + R"(,"additionalProperties":{"type":"integer"}})",
               {"{}", R"({"number":1.5,"x":2})"}, {R"({"x":"y"})", R"({"x":1.5})"});
  ExpectSchema(head + R"(,"additionalProperties":false})", {"{}", R"({"number":1})"},
               {R"({"x":1})"});
  // Absent: closed, where the object lists its properties and nothing else speaks of it.
  ExpectSchema(head + "}", {"{}", R"({"number":1})"}, {R"({"x":1})"});
  ExpectSchema(R"({"type":"object"})", {"{}", R"({"x":1})"}, {"[]"});
  ExpectSchema(R"({"allOf":[{"type":"object","properties":{"a":{"type":"null"}},"required":["a"]},)"
               R"({"properties":{"b":{"type":"null"}},"required":["b"]}]})",
               {R"({"a":null,"b":null})"}, {R"({"a":null})"});
  ExpectSchema(R"({"type":"object","properties":{"a":{"type":"null"}},"required":["b"]})",
               {R"({"a":null,"b":1})", R"({"b":1})"}, {"{}"});
}

TEST(Grammar, Case28EnumsAndConstants) {
  ExpectSchema(R"({"enum":[1,2,3]})", {"1", "3"}, {"\"\"", "\"1\"", "4", "12"});
  ExpectSchema(R"({"enum":[true,null,"a\"b\\c","é"]})",
               {"true", "null", R"("a\"b\\c")", "\"\u00e9\""}, {"false", "\"a\"", "{}"});
  ExpectSchema(R"({"const":null})", {"null"}, {"nul", "0"});
  ExpectSchema(R"({"const":{"a":[1,"x"]}})", {R"({"a":[1,"x"]})"}, {R"({"a":[1]})", "{}"});
}

TEST(Grammar, Case31TokensThatNobodyExpects) {
  const auto matcher = Start(Of(Kind::kJsonSchema, R"({"type":"object"})"));
  EXPECT_FALSE(Allows(*matcher, kUnused));
  EXPECT_FALSE(Allows(*matcher, kEnd));
  EXPECT_FALSE(Allows(*matcher, kFence));
  for (TokenId id = kFence + 1; id < kVocab; ++id) EXPECT_FALSE(Allows(*matcher, id)) << id;
  ASSERT_TRUE(Allows(*matcher, kBraceQuote));
  ASSERT_TRUE(Take(matcher.get(), kBraceQuote).ok());
  EXPECT_TRUE(Write(matcher.get(), "a\":1}"));
  // A token beside the mask is an error of this answer, not of the process.
  const auto broken = Start(Of(Kind::kJsonSchema, R"({"type":"object"})"));
  EXPECT_FALSE(Take(broken.get(), kUnused).ok());
  EXPECT_FALSE(Take(broken.get(), '{').ok());
}

TEST(Grammar, Case32AmbiguityAndWhiteSpaceAreBounded) {
  const auto matcher = Start(Of(Kind::kGbnf,
                                "root ::= [0-9] (a? a? a? a? a? [0-9])*\n"
                                "a ::= \"a\"\n"));
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(Write(matcher.get(), "1aaa2aaaaa3")) << i;
  EXPECT_FALSE(Write(matcher.get(), "aaaaaa"));

  const auto json = Start(Of(Kind::kJsonSchema, R"({"type":"object"})"));
  EXPECT_FALSE(Allows(*json, ' '));  // none before it
  EXPECT_TRUE(Write(json.get(), "{" + std::string(32, ' ')));
  EXPECT_FALSE(Allows(*json, ' '));
  EXPECT_FALSE(Allows(*json, '\n'));
  EXPECT_TRUE(Write(json.get(), "}"));
  EXPECT_TRUE(json->complete());  // and none after it
}

TEST(Grammar, Case33NestingAndRecursion) {
  ExpectRefused(Of(Kind::kRegex, std::string(60000, '(')), "", "bytes");
  ExpectRefused(Of(Kind::kRegex, std::string(8000, '(')), "", "nested");
  ExpectRefused(Of(Kind::kRegex, "(?<=x)*"), "", "");
  ExpectRefused(Of(Kind::kGbnf, "root ::= " + std::string(60000, '(')), "", "nested");
  ExpectRefused(Of(Kind::kLark, "start: " + std::string(60000, '(')), "", "nested");
  std::string deep;
  for (int i = 0; i < 10000; ++i) deep += R"({"items":)";
  ExpectRefused(Of(Kind::kJsonSchema, deep + "{}" + std::string(10000, '}')), "", "");
  ExpectRefused(
      Of(Kind::kJsonSchema, R"({"type":"string","pattern":")" + std::string(3000, '(') + "\"}"),
      "pattern", "nested");
  // Recursion through the document is fine where JSON grows with it.
  ExpectSchema(R"({"type":"object","properties":{"next":{"$ref":"#"}}})",
               {"{}", R"({"next":{"next":{}}})"}, {R"({"next":1})"});
  ExpectRefused(Of(Kind::kJsonSchema, R"({"$ref":"#"})"), "$ref", "");
  ExpectRefused(Of(Kind::kGbnf, "root ::= root"), "", "");
  // Repetitions of repetitions are not written out: they compile, and an answer that leads too deep
  // into them fails alone.
  const auto many = Start(Of(Kind::kRegex, "((((a{1,1000}){1,1000}){1,1000}){1,1000}){1,1000}"));
  int written = 0;
  while (written < 2000 && Allows(*many, 'a') && Take(many.get(), 'a').ok()) ++written;
  EXPECT_GT(written, 0);
}

TEST(Grammar, RegexChoiceAndGrammars) {
  EXPECT_TRUE(Takes(Of(Kind::kRegex, R"(\d{3}/[a-c]+)"), "123/abc"));
  EXPECT_FALSE(Takes(Of(Kind::kRegex, R"(\d{3}/[a-c]+)"), "123/"));
  EXPECT_FALSE(Takes(Of(Kind::kRegex, R"(\d{3})"), "1234"));
  const GrammarSpec choice = Of(Kind::kChoice, R"(["yes","no","no \"way\"","nein\n"])");
  for (const char* text : {"yes", "no", "no \"way\"", "nein\n"}) EXPECT_TRUE(Takes(choice, text));
  for (const char* text : {"y", "maybe", "yes no"}) EXPECT_FALSE(Takes(choice, text));
  ExpectRefused(Of(Kind::kChoice, "[]"), "", "nothing");
  const GrammarSpec lark = Of(Kind::kLark, "start: \"a\" inner+\ninner: /[0-9]/ \";\"");
  EXPECT_TRUE(Takes(lark, "a1;2;"));
  EXPECT_FALSE(Takes(lark, "a"));
  ExpectRefused(Of(Kind::kLark, "start: missing"), "", "missing");
}

// llama.cpp's grammars/README.md describes the syntax.
TEST(Grammar, Gbnf) {
  const GrammarSpec list = Of(Kind::kGbnf, R"(# a list
root ::= "[" ws (item (","
  ws item)*)? "]"   # over two lines
item ::= num-ber | [^\x00-\x1f",\]]{2,3} |
  "\"" "\u00e9" "\""
num-ber ::= "-"? [1-9] [0-9]{0,2}
ws ::= " "?
)");
  for (const char* text : {"[]", "[ 1,-23, 456]", "[ab,abc]", "[\"\u00e9\"]"}) {
    EXPECT_TRUE(Takes(list, text)) << text;
  }
  for (const char* text : {"[,]", "[0]", "[a]", "[1234567]", "[\"e\"]"}) {
    EXPECT_FALSE(Takes(list, text)) << text;
  }
  ExpectRefused(Of(Kind::kGbnf, "root ::= missing"), "", "line 1: there is no rule \"missing\"");
  ExpectRefused(Of(Kind::kGbnf, "a ::= \"x\""), "", "root");
  ExpectRefused(Of(Kind::kGbnf, "root ::= \"x\"\nroot ::= \"y\""), "", "twice");
  ExpectRefused(Of(Kind::kGbnf, "root ::= \"x"), "", "terminal");
  ExpectRefused(Of(Kind::kGbnf, "root ::= [z-a]"), "", "range");
  ExpectRefused(Of(Kind::kGbnf, "root ::= \"a\" {"), "", "line 1");
}

TEST(Grammar, Calls) {
  GrammarSpec spec;
  spec.kind = Kind::kCalls;
  spec.calls = {
      {"<t>{\"name\": \"f\", \"arguments\": ",
       R"({"type":"object","properties":{"x":{"$ref":"#/$defs/n"}},"required":["x"],)"
       R"("$defs":{"n":{"type":"integer"}}})",
       "}</t>"},
      {"<t>{\"name\": \"g\", \"arguments\": ", R"({"type":"object","properties":{}})", "}</t>"}};
  spec.separator = "\n";
  const std::string f = "<t>{\"name\": \"f\", \"arguments\": {\"x\":1}}</t>";
  const std::string g = "<t>{\"name\": \"g\", \"arguments\": {}}</t>";
  EXPECT_TRUE(Takes(spec, f));
  EXPECT_TRUE(Takes(spec, g));
  EXPECT_FALSE(Takes(spec, f + "\n" + g));
  EXPECT_FALSE(Takes(spec, "hello"));
  spec.many = true;
  EXPECT_TRUE(Takes(spec, f + "\n" + g + "\n" + f));
  spec.open = "<calls>";
  spec.close = "</calls>";
  EXPECT_TRUE(Takes(spec, "<calls>" + g + "</calls>"));
  // Instead of another answer.
  spec.kind = Kind::kJsonSchema;
  spec.text = R"({"type":"integer"})";
  EXPECT_TRUE(Takes(spec, "<calls>" + g + "</calls>"));
  EXPECT_TRUE(Takes(spec, "42"));
  EXPECT_FALSE(Takes(spec, "x"));
  spec.kind = Kind::kCalls;
  // A mark may be a control token.
  spec.controls = {{"<calls>", kUnused}};
  const auto matcher = Start(spec);
  EXPECT_TRUE(Allows(*matcher, kUnused));
  EXPECT_FALSE(Allows(*matcher, '<'));
  ASSERT_TRUE(Take(matcher.get(), kUnused).ok());
  EXPECT_TRUE(Write(matcher.get(), g + "</calls>"));
  spec.calls[1].schema = R"({"properties":{"a":{"not":{}}}})";
  ExpectRefused(spec, "[1].properties.a.not", "not");
}

TEST(Grammar, ReasoningComesFirst) {
  GrammarSpec spec = Of(Kind::kJsonSchema, R"({"type":"object","properties":{}})");
  spec.think_begin = "<think>";
  spec.think_end = "</think>";
  EXPECT_TRUE(Takes(spec, "<think>free text, </thin {\"</think>\n\n{}"));
  EXPECT_TRUE(Takes(spec, "{}"));
  EXPECT_FALSE(Takes(spec, "free text</think>{}"));
  EXPECT_FALSE(Takes(spec, "<think>a</think>b"));
  spec.controls = {{"</think>", kUnused}};
  const auto matcher = Start(spec);
  ASSERT_TRUE(Write(matcher.get(), "<think>free text </think> still"));
  ASSERT_TRUE(Allows(*matcher, kUnused));
  ASSERT_TRUE(Take(matcher.get(), kUnused).ok());
  EXPECT_FALSE(Allows(*matcher, 'x'));
  EXPECT_TRUE(Write(matcher.get(), "\n\n{}"));
  spec.controls.clear();
  spec.think_opened = true;
  EXPECT_TRUE(Takes(spec, "free\n\ntext</think>\n\n{}"));
  EXPECT_FALSE(Takes(spec, "free"));
}

TEST(Grammar, OneAnswerDoesNotSeeAnother) {
  const GrammarSpec spec = Of(Kind::kJsonSchema, R"({"type":"object"})");
  const auto alone = Start(spec);
  const auto first = Start(spec);
  const std::string text = R"({"abc": [1, {"d": "e f"}], "g": null)";
  for (const char c : text) {
    const auto other = Start(spec);
    Write(other.get(), R"({"zzz": "\u0041)");
    ASSERT_TRUE(Write(first.get(), std::string(1, c)));
  }
  ASSERT_TRUE(Write(alone.get(), text));
  const auto a = alone->mask();
  const auto b = first->mask();
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
}

TEST(Grammar, CompiledOnce) {
  const GrammarSpec spec = Of(Kind::kRegex, "abc|def");
  const auto a = Compiler().Compile(spec);
  const auto b = Compiler().Compile(spec);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(*a, *b);
}

TEST(Grammar, AModelWithoutAnEndIsRefused) {
  GrammarCompiler compiler(MakeTokenizer(), kVocab, {});
  EXPECT_EQ(compiler.Compile(Of(Kind::kRegex, "a")).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
