#include "api/testing/testing.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "text/gguf_vocabulary.h"

namespace lockstep::testing {
namespace {

constexpr std::string_view kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] }}"
    "{% if message.tool_calls %}{{ message.tool_calls | tojson }}{% endif %}"
    "{{ '<|im_end|>\\n' }}"
    "{% if message['content'] == 'raise' %}{{ raise_exception('no such thing') }}{% endif %}"
    "{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

std::string Utf8(uint32_t code_point) {
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xC0 | (code_point >> 6)),
          static_cast<char>(0x80 | (code_point & 0x3F))};
}

// How byte-level BPE writes each byte (the table of GPT-2's encoder): printable ones as themselves,
// the rest as the characters from U+0100 on.
std::vector<std::string> ByteTexts() {
  std::vector<std::string> texts;
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    texts.push_back(Utf8(printable ? byte : next++));
  }
  return texts;
}

// The fake executor, but saying what the script says.
class ScriptedExecutor : public Executor {
 public:
  ScriptedExecutor(FakeOptions fake, std::vector<TokenId> script)
      : fake_(std::move(fake)), script_(std::move(script)) {}

  const ExecutorInfo& info() const override { return fake_.info(); }
  Status AllocateCache(const std::vector<int32_t>& blocks) override {
    return fake_.AllocateCache(blocks);
  }
  Status Step(const StepInput& input, StepOutput* output) override {
    LOCKSTEP_RETURN_IF_ERROR(fake_.Step(input, output));
    for (size_t i = 0; i < input.rows.size(); ++i) {
      const StepRow& row = input.rows[i];
      if (row.sampling == nullptr) continue;
      const auto at = static_cast<size_t>(row.begin + row.count - row.prompt_tokens);
      RowOutput& out = output->rows[i];
      out.token = at < script_.size() ? script_[at] : kImEnd;
      out.logprobs.token = out.token;
    }
    return OkStatus();
  }

 private:
  FakeExecutor fake_;
  std::vector<TokenId> script_;
};

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) fmt::print(stderr, "{}\n", result.status().ToString());
  return std::move(result).value();
}

}  // namespace

std::shared_ptr<const Tokenizer> ByteTokenizer(bool adds_bos) {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "gpt-2";
  vocabulary.tokens = ByteTexts();
  for (const char* text : {"<|im_start|>", "<|im_end|>", "<s>", "STOP", "Hello", "zq"}) {
    vocabulary.tokens.push_back(text);
  }
  LOCKSTEP_CHECK(vocabulary.tokens.size() == kVocab);
  vocabulary.token_types.assign(vocabulary.tokens.size(),
                                static_cast<int32_t>(GgufTokenType::kNormal));
  for (const TokenId id : {kImStart, kImEnd, kBos}) {
    vocabulary.token_types[static_cast<size_t>(id)] = static_cast<int32_t>(GgufTokenType::kControl);
  }
  vocabulary.merges = {"z q"};
  vocabulary.eos_id = kImEnd;
  if (adds_bos) vocabulary.bos_id = kBos;
  vocabulary.add_bos = adds_bos;
  return Must(Tokenizer::FromGguf(vocabulary));
}

ModelOptions::ModelOptions() {
  fake.vocab_size = kVocab;
  engine.kv_bytes = 1 << 20;
  engine.max_rows = 16;
  engine.step_tokens = 64;
  engine.eos_ids = {kImEnd};
}

std::vector<TokenId> Bytes(std::string_view text) {
  std::vector<TokenId> tokens;
  for (const char byte : text) tokens.push_back(static_cast<uint8_t>(byte));
  return tokens;
}

TestModel::TestModel(ModelOptions options) {
  served.tokenizer = ByteTokenizer(options.adds_bos);
  std::unique_ptr<Executor> executor;
  if (options.script.empty()) {
    executor = std::make_unique<FakeExecutor>(options.fake);
  } else {
    executor = std::make_unique<ScriptedExecutor>(options.fake, options.script);
  }
  engine = Must(Engine::Create(std::move(executor), served.tokenizer, options.engine));
  served.id = "test-model";
  served.aliases = {"test-alias"};
  served.created = 1234567890;
  served.fingerprint = "fp-test";
  served.version = "0.0.0";
  served.vocab_size = kVocab;
  served.max_context = options.fake.max_context;
  served.engine = engine.get();
  served.grammars =
      std::make_shared<GrammarCompiler>(served.tokenizer, kVocab, std::vector<TokenId>{kImEnd});
  if (options.with_template) {
    const std::string_view source =
        options.chat_template.empty() ? kChatMl : std::string_view(options.chat_template);
    served.chat_template = Must(ChatTemplate::Compile(source, {"<s>", "<|im_end|>"}));
  }
}

}  // namespace lockstep::testing
