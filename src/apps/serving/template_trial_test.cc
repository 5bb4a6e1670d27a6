#include "apps/serving/template_trial.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

Status Try(const std::string& source) {
  const auto compiled = ChatTemplate::Compile(source, {});
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  return TryChatTemplate(**compiled);
}

TEST(TemplateTrial, TemplatesThatRenderOrRaise) {
  EXPECT_TRUE(Try("{% for m in messages %}{{ m.role ~ m.content }}{% endfor %}").ok());
  EXPECT_TRUE(Try("{{ raise_exception('no system message') }}").ok());
  EXPECT_TRUE(Try("{% if tools %}{{ raise_exception('no tools') }}{% endif %}").ok());
}

TEST(TemplateTrial, WhatIsNotSupportedIsNamedWithItsLine) {
  const Status filter = Try("a\n{{ messages|no_such_filter }}\n");
  EXPECT_NE(filter.message().find("no_such_filter"), std::string::npos) << filter.ToString();
  EXPECT_NE(filter.message().find("line 2"), std::string::npos) << filter.ToString();
  // In a part that only some conversations reach.
  const Status method = Try("{% if tools %}\n\n{{ tools[0].no_such_method() }}{% endif %}");
  EXPECT_NE(method.message().find("a call of a tool"), std::string::npos) << method.ToString();
  EXPECT_NE(method.message().find("line 3"), std::string::npos) << method.ToString();
  const Status role =
      Try("{% if messages[0].role == 'system' %}{{ 1 is no_such_test }}{% endif %}");
  EXPECT_NE(role.message().find("a conversation"), std::string::npos) << role.ToString();
}

}  // namespace
}  // namespace lockstep
