// POST /v1/responses where a test must write the answer down: reasoning, cuts and failures, against
// what OpenAI's API reference says of items and events. The rest:
// tests/e2e/test_openai_responses.py.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/openai_responses/endpoint.h"
#include "api/openai_responses/items.h"
#include "api/openai_responses/writer.h"
#include "api/testing/testing.h"

namespace lockstep {
namespace {

using testing::TestModel;

AnswerParserOptions Reasoner(bool open = false) {
  AnswerParserOptions options;
  options.reasons = true;
  options.reasoning_open = open;
  return options;
}

// Pushes the answer in pieces of `step` bytes, a token each byte.
struct Answer {
  explicit Answer(bool stream, AnswerParserOptions parser = Reasoner()) {
    ResponsesAnswerOptions options;
    options.unique = "u";
    options.head = {{"id", "resp_u"}, {"status", "in_progress"}, {"store", true}};
    options.stream = stream;
    options.parser = std::move(parser);
    options.store = store;
    options.owner = "me";
    options.items = "[]";
    writer = std::make_unique<ResponsesWriter>(std::move(options));
    if (stream) bytes = writer->Begin();
  }
  void Push(std::string_view text, size_t step) {
    for (size_t i = 0; i < text.size(); i += step) {
      GenerationEvent event;
      event.text = text.substr(i, step);
      for (const char byte : event.text) {
        TokenEvent token;
        token.bytes = {byte};
        event.tokens.push_back(std::move(token));
      }
      tokens += static_cast<int32_t>(event.text.size());
      ASSERT_TRUE(writer->Take(0, std::move(event), &bytes).ok());
    }
  }
  Status Finish(FinishReason reason, Status status = {}) {
    GenerationEvent event;
    event.end.emplace();
    event.end->reason = reason;
    event.end->status = std::move(status);
    event.end->usage = {7, tokens, 3};
    const Status taken = writer->Take(0, std::move(event), &bytes);
    if (taken.ok()) bytes += writer->End();
    return taken;
  }
  std::vector<Json> Events() const {
    std::vector<Json> events;
    for (size_t at = bytes.find("data: "); at != bytes.npos; at = bytes.find("data: ", at + 1)) {
      events.push_back(Json::parse(bytes.substr(at + 6, bytes.find('\n', at) - at - 6)));
      EXPECT_EQ(events.back()["sequence_number"], events.size() - 1);
    }
    return events;
  }

  std::shared_ptr<ResponseStore> store = std::make_shared<ResponseStore>(ResponseStoreOptions());
  std::unique_ptr<ResponsesWriter> writer;
  std::string bytes;
  int32_t tokens = 0;
};

TEST(Responses, ReasoningIsAnItemOfItsOwnHoweverItIsCut) {
  const std::string text = "<think>\nhm, well\n</think>\n\nYes.";
  for (size_t step = 1; step <= text.size(); ++step) {
    Answer whole(/*stream=*/false);
    whole.Push(text, step);
    ASSERT_TRUE(whole.Finish(FinishReason::kStop).ok());
    const Json response = Json::parse(whole.bytes);
    EXPECT_EQ(response["status"], "completed");
    EXPECT_EQ(response["output"], Json::parse(R"([
      {"id":"rs_u0000","type":"reasoning","summary":[],
       "content":[{"type":"reasoning_text","text":"hm, well"}],"status":"completed"},
      {"id":"msg_u0001","type":"message","role":"assistant",
       "content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Yes."}],
       "status":"completed"}])"));
    // "<think>\nhm, well\n</think>" is 25 tokens of a byte each.
    EXPECT_EQ(response["usage"], Json::parse(R"({"input_tokens":7,
      "input_tokens_details":{"cached_tokens":3,"cache_write_tokens":0},"output_tokens":31,
      "output_tokens_details":{"reasoning_tokens":25},"total_tokens":38})"));

    Answer stream(/*stream=*/true);
    stream.Push(text, step);
    ASSERT_TRUE(stream.Finish(FinishReason::kStop).ok());
    const std::vector<Json> events = stream.Events();
    std::vector<std::string> names;
    std::string reasoning;
    for (const Json& event : events) {
      if (names.empty() || event["type"] != names.back()) names.push_back(event["type"]);
      if (event["type"] == "response.reasoning_text.delta") {
        reasoning += event["delta"].get<std::string>();
        EXPECT_EQ(event["item_id"], "rs_u0000");
      }
    }
    const std::vector<std::string> expected = {"response.created",
                                               "response.in_progress",
                                               "response.output_item.added",
                                               "response.content_part.added",
                                               "response.reasoning_text.delta",
                                               "response.reasoning_text.done",
                                               "response.content_part.done",
                                               "response.output_item.done",
                                               "response.output_item.added",
                                               "response.content_part.added",
                                               "response.output_text.delta",
                                               "response.output_text.done",
                                               "response.content_part.done",
                                               "response.output_item.done",
                                               "response.completed"};
    EXPECT_EQ(names, expected);
    EXPECT_EQ(reasoning, "hm, well");
    EXPECT_EQ(events.back()["response"]["output"], response["output"]);
    EXPECT_EQ(events.back()["response"]["usage"], response["usage"]);
    EXPECT_EQ(stream.store->Find("resp_u", "me")->response, DumpJson(events.back()["response"]));
  }
}

TEST(Responses, CutWhileReasoning) {
  Answer answer(/*stream=*/true, Reasoner(/*open=*/true));
  answer.Push("hm, we", 1);
  ASSERT_TRUE(answer.Finish(FinishReason::kLength).ok());
  const Json last = answer.Events().back();
  EXPECT_EQ(last["type"], "response.incomplete");
  EXPECT_EQ(last["response"]["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(last["response"]["output"][0]["type"], "reasoning");
  EXPECT_EQ(last["response"]["output"][0]["status"], "incomplete");
  EXPECT_EQ(last["response"]["usage"]["output_tokens_details"]["reasoning_tokens"], 6);
}

TEST(Responses, AFailureIsTheLastEventAndIsNotStored) {
  Answer answer(/*stream=*/true, {});
  answer.Push("par", 1);
  const Status status = answer.Finish(FinishReason::kError, Internal("the row broke"));
  EXPECT_EQ(status.message(), "the row broke");
  const Json last = answer.Events().back();
  EXPECT_EQ(last["type"], "response.failed");
  EXPECT_EQ(last["response"]["status"], "failed");
  EXPECT_EQ(last["response"]["error"],
            Json::parse(R"({"code":"server_error","message":"the row broke"})"));
  EXPECT_TRUE(ResponsesErrorEvent(status).starts_with(": {"));
  EXPECT_EQ(answer.store->size(), 0u);
}

TEST(Responses, NothingSaidIsAnEmptyMessage) {
  Answer answer(/*stream=*/false, {});
  ASSERT_TRUE(answer.Finish(FinishReason::kStop).ok());
  const Json output = Json::parse(answer.bytes)["output"];
  EXPECT_EQ(output[0]["content"][0]["text"], "");
}

TEST(Responses, ItemsOfTheAssistantAreOneMessage) {
  const auto items = ReadInputItems(Json::parse(R"({"input":[
    {"role":"user","content":"q"},
    {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},
    {"role":"assistant","content":"wait"},
    {"type":"function_call","call_id":"1","name":"f","arguments":"{\"x\":1}"},
    {"type":"function_call","call_id":"2","name":"g","arguments":"no JSON"},
    {"type":"function_call_output","call_id":"2","output":[{"type":"input_text","text":"5"}]},
    {"type":"function_call_output","call_id":"1","output":"6"},
    {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"so"}]},
    {"role":"assistant","content":"it is"},{"role":"assistant","content":"eleven"}]})"),
                                    "u");
  ASSERT_TRUE(items.ok()) << items.status().ToString();
  EXPECT_EQ((*items)[0]["id"], "msg_ui0000");
  const auto messages = MessagesOfItems(*items);
  ASSERT_TRUE(messages.ok()) << messages.status().ToString();
  EXPECT_EQ(*messages, Json::parse(R"([
    {"role":"user","content":"q"},
    {"role":"assistant","content":"wait","reasoning_content":"hm","tool_calls":[
      {"id":"1","type":"function","function":{"name":"f","arguments":{"x":1}}},
      {"id":"2","type":"function","function":{"name":"g","arguments":"no JSON"}}]},
    {"role":"tool","content":"5","name":"g","tool_call_id":"2"},
    {"role":"tool","content":"6","name":"f","tool_call_id":"1"},
    {"role":"assistant","content":"it is","reasoning_content":"so"},
    {"role":"assistant","content":"eleven"}])"));
}

TEST(Responses, AServerThatKeepsNothingSaysSo) {
  TestModel model;  // its served model has no store
  const ApiContext context{std::make_shared<ServedModel>(model.served), false, nullptr};
  const auto ask = [&](const std::string& body) {
    return HandleResponses(context, {body, "", "u", 1, nullptr});
  };
  EXPECT_TRUE(std::holds_alternative<GenerationJob>(ask(R"({"input":"x"})")));
  EXPECT_EQ(std::get<ApiReply>(ask(R"({"input":"x","store":true})")).status, 400);
  EXPECT_EQ(std::get<ApiReply>(ask(R"({"input":"x","previous_response_id":"r"})")).status, 404);
  EXPECT_EQ(std::get<ApiReply>(HandleResponse(context, {"", "r", "u", 1, nullptr})).status, 404);
}

}  // namespace
}  // namespace lockstep
