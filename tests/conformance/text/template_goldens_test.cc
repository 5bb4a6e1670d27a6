// Published chat templates against what Python's Jinja makes of them (make_template_goldens.py).
// goldens/template_gaps.json lists the renderings known to differ, with why.
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <cstdlib>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "reference_files.h"
#include "text/chat_template.h"
#include "weights/gguf.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string HashStart(const std::string& text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  std::string hex;
  for (int i = 0; i < 8; ++i) {
    hex += "0123456789abcdef"[digest[i] / 16];
    hex += "0123456789abcdef"[digest[i] % 16];
  }
  return hex;
}

Result<std::string> Source(const std::string& name) {
  if (name != "SmolLM2") return ReadReference(LlamaCppModels() + "/templates/" + name + ".jinja");
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, GgufFile::Open(SmolLm2Path()));
  return file->metadata().GetString("tokenizer.chat_template");
}

// What came out, in the form of the golden file.
Json Outcome(const Result<std::string>& text) {
  if (text.ok()) return HashStart(*text);
  const Status status = text.status();
  if (status.param() == "messages") return Json{{"raised", status.message()}};
  return Json{{"failed", status.message()}};
}

// Where Python itself fails (a TypeError, say), there is nothing to be equal to.
bool HasReference(const Json& expected) {
  return !expected.is_object() || !expected.contains("failed");
}

TEST(TemplateGoldens, AreEqual) {
  setenv("TZ", "UTC", 1);
  tzset();
  const Json goldens = Json::parse(ReadReference(GoldenPath("templates.json")));
  const Json gaps = Json::parse(ReadReference(GoldenPath("template_gaps.json")));
  const ChatTemplateConstants constants{goldens["constants"]["bos_token"],
                                        goldens["constants"]["eos_token"]};
  size_t equal = 0, total = 0;
  for (const auto& [name, rows] : goldens["rendered"].items()) {
    const auto source = Source(name);
    ASSERT_TRUE(source.ok()) << source.status().ToString();
    const auto compiled = ChatTemplate::Compile(*source, constants);
    for (const auto& [conversation, expected] : rows.items()) {
      const std::string context = goldens["conversations"][conversation].dump();
      const Result<std::string> text =
          compiled.ok() ? (*compiled)->Render(context, goldens["time"].get<int64_t>())
                        : Result<std::string>(compiled.status());
      if (!HasReference(expected)) continue;
      const Json actual = Outcome(text);
      const bool same = expected == actual;
      // The list of gaps is kept true: one that closed must leave it.
      const bool gap = gaps.contains(name) && gaps[name].contains(conversation);
      EXPECT_EQ(same, !gap) << name << " / " << conversation << ": " << actual << " for "
                            << expected;
      total += 1;
      equal += same;
    }
  }
  RecordProperty("equal", std::to_string(equal));
  RecordProperty("total", std::to_string(total));
  std::cout << equal << " of " << total << " renderings are equal\n";
  EXPECT_GT(total, 800u);
}

}  // namespace
}  // namespace lockstep
