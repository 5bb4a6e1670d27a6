#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "api/openai_chat/endpoint.h"
#include "api/testing/testing.h"

namespace lockstep {
namespace {

using testing::TestModel;

// Calls the endpoint with `body` on a model that is up.
class ChatRequestTest : public ::testing::Test {
 protected:
  ApiResult Call(const std::string& body) {
    ApiContext context;
    context.model = std::make_shared<ServedModel>(model_.served);
    context.http = &http_;
    return HandleChatCompletions(context, {body, {}, "u", 1});
  }
  // The body with one message and `fields` beside it.
  ApiResult CallWith(const std::string& fields) {
    return Call(R"({"messages":[{"role":"user","content":"hi"}],)" + fields + "}");
  }
  GenerationRequest Accepted(ApiResult result) {
    if (auto* reply = std::get_if<ApiReply>(&result)) {
      ADD_FAILURE() << reply->body;
      return {};
    }
    return std::get<GenerationJob>(std::move(result)).requests.at(0);
  }
  std::string PromptText(ApiResult result) {
    return model_.served.tokenizer->Decode(Accepted(std::move(result)).prompt,
                                           {.skip_special = false});
  }
  // The error's param; "ok" when there was none.
  std::string Param(ApiResult result, int status = 400) {
    const auto* reply = std::get_if<ApiReply>(&result);
    if (reply == nullptr) return "ok";
    EXPECT_EQ(reply->status, status) << reply->body;
    const Json error = Json::parse(reply->body).at("error");
    EXPECT_FALSE(error.at("message").get<std::string>().empty());
    return error.at("param").is_null() ? "null" : error.at("param").get<std::string>();
  }

  HttpCounters http_;
  TestModel model_;
};

TEST_F(ChatRequestTest, DefaultsAreOpenAis) {
  const GenerationRequest request = Accepted(CallWith(R"("stream":false)"));
  EXPECT_EQ(request.sampling.temperature, 1.0f);
  EXPECT_EQ(request.sampling.top_p, 1.0f);
  EXPECT_EQ(request.sampling.top_k, 0);
  EXPECT_EQ(request.sampling.logprobs, -1);
  EXPECT_EQ(request.max_tokens, -1);
  EXPECT_FALSE(request.seed.has_value());
  EXPECT_TRUE(request.stop.empty());
  EXPECT_TRUE(request.skip_special_tokens);
}

TEST_F(ChatRequestTest, C56_WrongTypesAndRangesNameTheField) {
  const std::pair<const char*, const char*> table[] = {
      {R"("temperature":"hot")", "temperature"},
      {R"("temperature":-0.1)", "temperature"},
      {R"("temperature":101)", "temperature"},
      {R"("temperature":true)", "temperature"},
      {R"("top_p":1.5)", "top_p"},
      {R"("top_p":-1)", "top_p"},
      {R"("top_k":-2)", "top_k"},
      {R"("top_k":-2147483648)", "top_k"},
      {R"("top_k":2147483648)", "top_k"},
      {R"("top_k":1.5)", "top_k"},
      {R"("min_p":1.1)", "min_p"},
      {R"("repetition_penalty":0)", "repetition_penalty"},
      {R"("repetition_penalty":1e-60)", "repetition_penalty"},
      {R"("repetition_penalty":1e-38)", "repetition_penalty"},
      {R"("repetition_penalty":-1)", "repetition_penalty"},
      {R"("presence_penalty":2.1)", "presence_penalty"},
      {R"("frequency_penalty":-2.1)", "frequency_penalty"},
      {R"("seed":1e30)", "seed"},
      {R"("seed":18446744073709551615)", "seed"},
      {R"("seed":"1")", "seed"},
      {R"("seed":0.5)", "seed"},
      {R"("n":0)", "n"},
      {R"("n":129)", "n"},
      {R"("n":"2")", "n"},
      {R"("max_tokens":"x")", "max_tokens"},
      {R"("max_tokens":0)", "max_tokens"},
      {R"("max_tokens":-1)", "max_tokens"},
      {R"("max_tokens":2147483648)", "max_tokens"},
      {R"("max_tokens":99999999999999999999999)", "max_tokens"},
      {R"("max_completion_tokens":0)", "max_completion_tokens"},
      {R"("max_tokens":3,"max_completion_tokens":4)", "max_tokens"},
      {R"("max_tokens":3,"min_tokens":4)", "min_tokens"},
      {R"("min_tokens":-1)", "min_tokens"},
      {R"("stream":"yes")", "stream"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("stream":true,"stream_options":[])", "stream_options"},
      {R"("stream":true,"stream_options":{"include_usage":1})", "include_usage"},
      {R"("stop":5)", "stop"},
      {R"("stop":["a",5])", "stop[1]"},
      {R"("stop":{"a":1})", "stop"},
      {R"("stop_token_ids":[-1])", "stop_token_ids[0]"},
      {R"("stop_token_ids":[1,262])", "stop_token_ids[1]"},
      {R"("stop_token_ids":7)", "stop_token_ids"},
      {R"("logit_bias":[])", "logit_bias"},
      {R"("logit_bias":{"-1":1,"9999999":5,"abc":1})", "logit_bias"},
      {R"("logit_bias":{"abc":1})", "logit_bias"},
      {R"("logit_bias":{"01":1})", "logit_bias"},
      {R"("logit_bias":{"262":1})", "logit_bias"},
      {R"("logit_bias":{"1":101})", "logit_bias"},
      {R"("logit_bias":{"1":"x"})", "logit_bias"},
      {R"("logprobs":5)", "logprobs"},
      {R"("top_logprobs":3)", "top_logprobs"},
      {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
      {R"("logprobs":true,"top_logprobs":-1)", "top_logprobs"},
      {R"("ignore_eos":1)", "ignore_eos"},
      {R"("skip_special_tokens":"no")", "skip_special_tokens"},
      {R"("user":5)", "user"},
      {R"("metadata":5)", "metadata"},
      {R"("store":"x")", "store"},
      {R"("model":5)", "model"},
      {R"("tools":{})", "tools"},
      {R"("tools":[[]])", "tools[0]"},
      {R"("tools":[{"type":"function"}])", "tools[0].function"},
      {R"("tools":[{"type":"function","function":{"name":5}}])", "tools[0].function.name"},
      {R"("tool_choice":"auto")", "tool_choice"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("tool_choice":{"type":"function","function":{"name":"f"}})", "tool_choice"},
      {R"("response_format":"text")", "response_format"},
      {R"("response_format":{})", "response_format.type"},
      {R"("chat_template_kwargs":[])", "chat_template_kwargs"},
      {R"("chat_template_kwargs":{"messages":[]})", "chat_template_kwargs"},
      {R"("add_generation_prompt":"x")", "add_generation_prompt"},
      {R"("n_keep":2147483647)", "n_keep"},
      {R"("bad_words":["x"])", "bad_words"},
      {R"("functions":[{"name":"f"}])", "functions"},
      {R"("audio":{})", "audio"},
      {R"("modalities":["audio"])", "modalities"},
      {R"("best_of":2)", "best_of"},
      {R"("echo":true)", "echo"},
      {R"("truncation":"auto")", "truncation"},
      {R"("prompt_logprobs":1)", "prompt_logprobs"},
  };
  for (const auto& [fields, param] : table) {
    EXPECT_EQ(Param(CallWith(fields)), param) << fields;
  }
}

TEST_F(ChatRequestTest, C56_NullIsAbsent) {
  for (const char* name : {"model",
                           "temperature",
                           "top_p",
                           "top_k",
                           "min_p",
                           "seed",
                           "n",
                           "max_tokens",
                           "max_completion_tokens",
                           "stream",
                           "stream_options",
                           "stop",
                           "stop_token_ids",
                           "logit_bias",
                           "logprobs",
                           "top_logprobs",
                           "user",
                           "metadata",
                           "store",
                           "tools",
                           "tool_choice",
                           "response_format",
                           "chat_template_kwargs",
                           "presence_penalty",
                           "frequency_penalty",
                           "repetition_penalty",
                           "audio",
                           "prediction",
                           "functions",
                           "reasoning_effort",
                           "echo"}) {
    EXPECT_EQ(Param(CallWith("\"" + std::string(name) + "\":null")), "ok") << name;
  }
}

TEST_F(ChatRequestTest, HarmlessAndUnknownFieldsPass) {
  for (const char* fields :
       {R"("brand_new_field":{"x":1})", R"("response_format":{"type":"text"})",
        R"("parallel_tool_calls":true)", R"("modalities":["text"])", R"("best_of":1)",
        R"("service_tier":"auto")", R"("metadata":{"a":"b"})", R"("length_penalty":1.0)",
        R"("tool_choice":"none")", R"("n_keep":0)"}) {
    EXPECT_EQ(Param(CallWith(fields)), "ok") << fields;
  }
}

TEST_F(ChatRequestTest, C35_SamplerEdges) {
  EXPECT_EQ(Accepted(CallWith(R"("temperature":0)")).sampling.temperature, 0.0f);
  EXPECT_LT(Accepted(CallWith(R"("temperature":1e-30)")).sampling.temperature, 1e-5f);
  EXPECT_EQ(Accepted(CallWith(R"("top_p":0)")).sampling.top_p, 0.0f);
  EXPECT_EQ(Accepted(CallWith(R"("top_p":1)")).sampling.top_p, 1.0f);
  EXPECT_EQ(Accepted(CallWith(R"("top_k":0)")).sampling.top_k, 0);
  EXPECT_EQ(Accepted(CallWith(R"("top_k":-1)")).sampling.top_k, 0);
  EXPECT_EQ(Accepted(CallWith(R"("top_k":263)")).sampling.top_k, 0);
  EXPECT_EQ(Accepted(CallWith(R"("top_k":5.0)")).sampling.top_k, 5);
  EXPECT_EQ(Accepted(CallWith(R"("min_p":1)")).sampling.min_p, 1.0f);
}

TEST_F(ChatRequestTest, C15_SeedZeroIsASeed) {
  EXPECT_EQ(Accepted(CallWith(R"("seed":0)")).seed, 0u);
  EXPECT_EQ(Accepted(CallWith(R"("seed":-1)")).seed, UINT64_MAX);
  EXPECT_EQ(Accepted(CallWith(R"("seed":42,"temperature":0.5)")).sampling.temperature, 0.5f);
}

TEST_F(ChatRequestTest, C06_EmptyStopsAreAbsent) {
  for (const char* fields : {R"("stop":null)", R"("stop":[])", R"("stop":"")", R"("stop":[""])"}) {
    EXPECT_TRUE(Accepted(CallWith(fields)).stop.empty()) << fields;
  }
  EXPECT_EQ(Accepted(CallWith(R"("stop":"x")")).stop.strings(), std::vector<std::string>({"x"}));
  EXPECT_EQ(Accepted(CallWith(R"("stop":["x","y"])")).stop.strings(),
            std::vector<std::string>({"x", "y"}));
  std::string many = R"("stop":["a")";
  for (int i = 0; i < 15; ++i) many += ",\"a\"";
  EXPECT_EQ(Accepted(CallWith(many + "]")).stop.strings().size(), 16u);
  EXPECT_EQ(Param(CallWith(many + ",\"a\"]")), "stop");
}

TEST_F(ChatRequestTest, StopStringsAreBoundedAndMadeOnce) {
  const auto stops = [](int count, size_t bytes) {
    std::string field = R"("n":3,"stop":[)";
    for (int i = 0; i < count; ++i) field += (i > 0 ? ",\"" : "\"") + std::string(bytes, 'a') + '"';
    return field + "]";
  };
  ApiResult result = CallWith(stops(4, 4096));
  const auto& requests = std::get<GenerationJob>(result).requests;
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].stop.strings().size(), 4u);
  for (const auto& request : requests) {
    EXPECT_EQ(&request.stop.strings(), &requests[0].stop.strings());
  }
  EXPECT_EQ(Param(CallWith(stops(1, 4097))), "stop");
  EXPECT_EQ(Param(CallWith(stops(5, 4096))), "stop");
}

TEST_F(ChatRequestTest, LogitBiasIsSorted) {
  const auto bias = Accepted(CallWith(R"("logit_bias":{"9":-100,"3":1.5})")).sampling.logit_bias;
  const std::vector<std::pair<TokenId, float>> expected = {{3, 1.5f}, {9, -100.0f}};
  EXPECT_EQ(bias, expected);
}

TEST_F(ChatRequestTest, C23_ChoicesDifferByStreamAlone) {
  ApiResult result = CallWith(R"("n":3,"seed":7,"logprobs":true,"top_logprobs":2)");
  const auto& job = std::get<GenerationJob>(result);
  ASSERT_EQ(job.requests.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(job.requests[i].sampling.stream, i);
    EXPECT_EQ(job.requests[i].seed, 7u);
    EXPECT_EQ(job.requests[i].sampling.logprobs, 2);
    EXPECT_EQ(job.requests[i].prompt, job.requests[0].prompt);
  }
}

TEST_F(ChatRequestTest, C09_EmptyMessages) {
  EXPECT_EQ(Param(Call(R"({"messages":[]})")), "messages");
  EXPECT_EQ(Param(Call(R"({})")), "messages");
  EXPECT_EQ(Param(Call(R"({"messages":{}})")), "messages");
  EXPECT_EQ(Param(Call(R"({"messages":[{"role":"user","content":""}]})")), "ok");
}

TEST_F(ChatRequestTest, C41_PartsAreJoinedInOrder) {
  const std::string parts =
      R"([{"type":"text","text":"tell me a "},{"type":"text","text":"riddle"}])";
  const auto with = [this](const std::string& content) {
    return Call(R"({"messages":[{"role":"user","content":)" + content + "}]}");
  };
  EXPECT_EQ(Accepted(with(parts)).prompt, Accepted(with(R"("tell me a riddle")")).prompt);
  EXPECT_EQ(Param(with(R"([{"type":"text","text":[["x"]]}])")), "messages[0].content[0].text");
  EXPECT_EQ(Param(with(R"([{"type":"text","text":123}])")), "messages[0].content[0].text");
  EXPECT_EQ(Param(with(R"([{"type":"text"}])")), "messages[0].content[0].text");
  EXPECT_EQ(Param(with(R"([{"type":"image_url","image_url":{"url":"x"}}])")),
            "messages[0].content[0].type");
  EXPECT_EQ(Param(with("123")), "messages[0].content");
  EXPECT_EQ(Param(with("null")), "messages[0].content");
}

TEST_F(ChatRequestTest, MessagePathsAreNamed) {
  EXPECT_EQ(Param(Call(R"({"messages":["x"]})")), "messages[0]");
  EXPECT_EQ(Param(Call(R"({"messages":[{"content":"x"}]})")), "messages[0].role");
  EXPECT_EQ(Param(Call(R"({"messages":[{"role":"robot","content":"x"}]})")), "messages[0].role");
  EXPECT_EQ(Param(Call(R"({"messages":[{"role":"assistant","tool_calls":[{"id":"1"}]}]})")),
            "messages[0].tool_calls[0].function");
  EXPECT_EQ(Param(Call(R"({"messages":[{"role":"user","content":"x","tool_calls":[]}]})")),
            "messages[0].tool_calls");
}

TEST_F(ChatRequestTest, C42_NullContentWithToolCalls) {
  const char* history[] = {R"("content":null,)", ""};
  for (const char* content : history) {
    const std::string text = PromptText(Call(
        R"({"messages":[{"role":"user","content":"2+3"},{"role":"assistant",)" +
        std::string(content) +
        R"("tool_calls":[{"id":"1","type":"function","function":{"name":"add","arguments":"{\"a\":2}"}}]},)"
        R"({"role":"tool","tool_call_id":"1","content":"5"}]})"));
    // The call is not dropped, its arguments are an object, and null content is empty.
    EXPECT_EQ(
        text,
        "<|im_start|>user\n2+3<|im_end|>\n<|im_start|>assistant\n"
        R"([{"id": "1", "type": "function", "function": {"name": "add", "arguments": {"a": 2}}}])"
        "<|im_end|>\n<|im_start|>tool\n5<|im_end|>\n<|im_start|>assistant\n");
  }
}

TEST_F(ChatRequestTest, C33_ArgumentsOfACallThatAreNoSaneJson) {
  const auto with = [this](const std::string& arguments) {
    const std::string text = Json(arguments).dump();
    return Call(R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":)"
                R"([{"id":"1","type":"function","function":{"name":"f","arguments":)" +
                text + "}}]}]}");
  };
  const std::string path = "messages[1].tool_calls[0].function.arguments";
  EXPECT_EQ(Param(with(R"({"a":)" + std::string(3000, '[') + std::string(3000, ']') + "}")), path);
  EXPECT_EQ(Param(with(R"({"a":1,"a":2})")), path);
  // What a model wrote wrongly comes back as it is.
  for (const char* text : {"", "{", "{\"a\":", "not json", "[1]", "5"}) {
    EXPECT_NE(PromptText(with(text)).find(Json(text).dump()), std::string::npos) << text;
  }
}

TEST_F(ChatRequestTest, ToolsReachTheTemplateUnlessNoneMayBeCalled) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}])";
  EXPECT_NE(PromptText(CallWith(tools)).find("\"name\": \"f\""), std::string::npos);
  EXPECT_NE(PromptText(CallWith(tools + R"(,"tool_choice":"auto")")).find("\"name\": \"f\""),
            std::string::npos);
  EXPECT_EQ(PromptText(CallWith(tools + R"(,"tool_choice":"none")")).find("\"name\": \"f\""),
            std::string::npos);
}

TEST_F(ChatRequestTest, AddGenerationPromptIsHeeded) {
  EXPECT_EQ(PromptText(CallWith(R"("add_generation_prompt":false)")),
            "<|im_start|>user\nhi<|im_end|>\n");
}

TEST_F(ChatRequestTest, DeveloperIsSystem) {
  EXPECT_EQ(PromptText(Call(R"({"messages":[{"role":"developer","content":"x"}]})")),
            "<|im_start|>system\nx<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(ChatRequestTest, C43_ATemplateThatRaisesIsTheClientsFault) {
  ApiResult result = Call(R"({"messages":[{"role":"user","content":"raise"}]})");
  const auto& reply = std::get<ApiReply>(result);
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("no such thing"), std::string::npos) << reply.body;
}

TEST_F(ChatRequestTest, C58_UnknownModelListsWhatThereIs) {
  ApiResult result = CallWith(R"("model":"no-such")");
  const auto& reply = std::get<ApiReply>(result);
  EXPECT_EQ(reply.status, 404);
  const Json error = Json::parse(reply.body)["error"];
  EXPECT_EQ(error["code"], "model_not_found");
  EXPECT_NE(error["message"].get<std::string>().find("test-model"), std::string::npos);
  EXPECT_EQ(Param(CallWith(R"("model":"test-alias")")), "ok");
  EXPECT_EQ(Param(CallWith(R"("model":"")"), 404), "model");
  model_.served.any_model_name = true;
  EXPECT_EQ(Param(CallWith(R"("model":"no-such")")), "ok");
}

TEST_F(ChatRequestTest, ModelWithoutTemplateSaysSo) {
  model_.served.chat_template = nullptr;
  EXPECT_EQ(Param(CallWith(R"("n":1)")), "messages");
}

TEST_F(ChatRequestTest, C45_TheTokenizersBosIsNotAddedToATemplate) {
  testing::ModelOptions options;
  options.adds_bos = true;
  TestModel with_bos(options);
  model_.served.tokenizer = with_bos.served.tokenizer;
  EXPECT_EQ(Accepted(CallWith(R"("n":1)")).prompt.front(), testing::kImStart);
}

}  // namespace
}  // namespace lockstep
