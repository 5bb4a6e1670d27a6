#include "text/chat_template.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

Result<std::string> Render(std::string_view source, std::string_view context) {
  auto compiled = ChatTemplate::Compile(source, {.bos_token = "<s>", .eos_token = "</s>"});
  if (!compiled.ok()) return compiled.status();
  return (*compiled)->Render(context);
}

void ExpectText(std::string_view source, std::string_view context, std::string_view expected) {
  const auto text = Render(source, context);
  ASSERT_TRUE(text.ok()) << source << "\n" << text.status().ToString();
  EXPECT_EQ(*text, expected) << source;
}

TEST(ChatTemplate, ChatMl) {
  ExpectText(
      "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + "
      "'\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
      R"({"messages":[{"role":"user","content":"Hi"}],"add_generation_prompt":true})",
      "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, BlocksAreTrimmed) {
  ExpectText("  {% if true %}\n  a\n  {% endif %}\n{{ bos_token }}{{ eos_token }}", "{}",
             "  a\n<s></s>");
}

// Expected texts are those of Python's json.dumps.
TEST(ChatTemplate, TojsonIsPythons) {
  const std::string_view context =
      R"({"x":{"z":[1,2.0,1e20,1e-7,true,null],"a":"é<&>\"\\\n\u0001","e":{},"l":[]}})";
  ExpectText(
      "{{ x|tojson }}", context,
      R"({"z": [1, 2.0, 1e+20, 1e-07, true, null], "a": "é<&>\"\\\n\u0001", "e": {}, "l": []})");
  ExpectText("{{ x|tojson(ensure_ascii=true, sort_keys=true, separators=(',', ':')) }}", context,
             R"({"a":"\u00e9<&>\"\\\n\u0001","e":{},"l":[],"z":[1,2.0,1e+20,1e-07,true,null]})");
  ExpectText("{{ {'a': [1, {}], 'b': 2}|tojson(indent=2) }}", "{}",
             "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": 2\n}");
}

TEST(ChatTemplate, ValuesArePrintedAsPythonDoes) {
  ExpectText("{{ x }} {{ 1e20 }} {{ 0.1 }} {{ 3.0 }} {{ true }} {{ none }}", R"({"x":1e-07})",
             "1e-07 1e+20 0.1 3.0 True None");
  ExpectText("{{ 'a' is sequence }} {{ none is iterable }} {{ {} is mapping }}", "{}",
             "True False True");
  ExpectText("{{ 'a.b.c'.rsplit('.', 1)[0] }} {{ 'xay'.removeprefix('x') }} {{ 'abc'.index('c') }}",
             "{}", "a.b ay 2");
  ExpectText("a{% generation %}b{%- endgeneration %} c", "{}", "ab c");
}

TEST(ChatTemplate, RaisedMessagesAreTheTemplatesOwn) {
  const auto text = Render("{{ raise_exception('System role not supported') }}", "{}");
  EXPECT_EQ(text.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(text.status().message(), "System role not supported");
  EXPECT_EQ(text.status().param(), "messages");
}

TEST(ChatTemplate, WhatIsNotSupportedIsNoFieldsFault) {
  for (const char* source :
       {"\n{{ 'a'|no_such_filter }}", "\n{{ 1 is no_such_test }}", "\n{{ no_such_function() }}",
        "\n{{ 'a'.no_such_method() }}", "\n{{ 1 / 0 }}"}) {
    const Status status = Render(source, "{}").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << source;
    EXPECT_EQ(status.param(), "") << source;
    EXPECT_NE(status.message().find("line 2"), std::string::npos) << status.ToString();
  }
}

TEST(ChatTemplate, StrftimeNowTellsTheGivenTime) {
  auto compiled = ChatTemplate::Compile("{{ strftime_now('%Y') }}", {});
  ASSERT_TRUE(compiled.ok());
  EXPECT_EQ(*(*compiled)->Render("{}", 1753012345), "2025");
}

TEST(ChatTemplate, CompileErrorsNameTheLine) {
  const auto compiled = ChatTemplate::Compile("a\nb\n{% if %}\n", {});
  ASSERT_FALSE(compiled.ok());
  EXPECT_NE(compiled.status().message().find("line 3"), std::string::npos)
      << compiled.status().ToString();
}

TEST(ChatTemplate, FaultyContextsAreRefused) {
  for (const char* context : {"", "[", "[]", "1", "{\"a\":}", "{\"a\":\"\xFF\"}"}) {
    EXPECT_EQ(Render("x", context).status().code(), StatusCode::kInvalidArgument) << context;
  }
  std::string deep = "{\"a\":";
  for (int i = 0; i < 100000; ++i) deep += '[';
  EXPECT_EQ(Render("x", deep).status().code(), StatusCode::kInvalidArgument);
}

TEST(ChatTemplate, TimeAndMemoryAreBounded) {
  const std::string_view loop =
      "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}"
      "{% set x = a %}{% endfor %}{% endfor %}{% endfor %}";
  const std::string_view growth =
      "{% set n = namespace(x='ab') %}{% for a in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor "
      "%}";
  const std::string_view repeat = "{{ 'x' * 9999999999 }}";
  for (const std::string_view source : {loop, growth, repeat}) {
    EXPECT_FALSE(Render(source, "{}").ok()) << source;
  }
  EXPECT_EQ(Render(loop, "{}").status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Render(growth, "{}").status().code(), StatusCode::kResourceExhausted);
  EXPECT_FALSE(Render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{}").ok());
}

}  // namespace
}  // namespace lockstep
