#include "api/openai_responses/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "api/call_id.h"
#include "api/error_map.h"

namespace lockstep {
namespace {

using Kind = AnswerDelta::Kind;

// What the API calls a piece of text, and the events of it.
struct Names {
  const char* part;
  const char* delta;
  const char* done;
  const char* field;  // of the done event
};

Names NamesOf(Kind kind) {
  switch (kind) {
    case Kind::kReasoning:
      return {"reasoning_text", "response.reasoning_text.delta", "response.reasoning_text.done",
              "text"};
    case Kind::kCall:
    case Kind::kArguments:
      return {nullptr, "response.function_call_arguments.delta",
              "response.function_call_arguments.done", "arguments"};
    case Kind::kContent:
      break;
  }
  return {"output_text", "response.output_text.delta", "response.output_text.done", "text"};
}

}  // namespace

ResponsesWriter::ResponsesWriter(ResponsesAnswerOptions options)
    : options_(std::move(options)), parser_(options_.parser) {}

void ResponsesWriter::Event(const char* name, Json data, std::string* out) {
  if (!options_.stream) return;
  Json event;
  event["type"] = name;
  event["sequence_number"] = sequence_++;
  event.update(data);
  *out += fmt::format("event: {}\n", name);
  AppendEvent(event, out);
}

Json ResponsesWriter::Place(bool in_content) const {
  Json place;
  place["item_id"] = item_["id"];
  place["output_index"] = output_.size();
  if (in_content) place["content_index"] = 0;
  return place;
}

Json ResponsesWriter::PartJson() const {
  Json part;
  part["type"] = NamesOf(kind_).part;
  if (kind_ == Kind::kContent) {
    part["annotations"] = Json::array();
    part["logprobs"] = Json::array();
  }
  part["text"] = text_;
  return part;
}

std::string ResponsesWriter::Begin() {
  std::string out;
  for (const char* name : {"response.created", "response.in_progress"}) {
    Json data;
    data["response"] = Response("in_progress");
    Event(name, std::move(data), &out);
  }
  return out;
}

void ResponsesWriter::OpenItem(const AnswerDelta& part, std::string* out) {
  open_ = true;
  kind_ = part.kind;
  text_.clear();
  item_ = Json::object();
  const std::string own = fmt::format("{}{:04}", options_.unique, output_.size());
  switch (kind_) {
    case Kind::kReasoning:
      item_["id"] = "rs_" + own;
      item_["type"] = "reasoning";
      item_["summary"] = Json::array();
      item_["content"] = Json::array();
      break;
    case Kind::kContent:
      item_["id"] = "msg_" + own;
      item_["type"] = "message";
      item_["role"] = "assistant";
      item_["content"] = Json::array();
      break;
    case Kind::kCall:
    case Kind::kArguments:
      item_["id"] = "fc_" + own;
      item_["type"] = "function_call";
      item_["call_id"] = CallId(options_.parser.tools, options_.unique, calls_++);
      item_["name"] = part.text;
      item_["arguments"] = "";
      break;
  }
  item_["status"] = "in_progress";
  Json added;
  added["output_index"] = output_.size();
  added["item"] = item_;
  Event("response.output_item.added", std::move(added), out);
  if (kind_ == Kind::kCall) return;
  Json begun = Place(/*in_content=*/true);
  begun["part"] = PartJson();
  Event("response.content_part.added", std::move(begun), out);
}

void ResponsesWriter::CloseItem(const char* status, std::string* out) {
  if (!open_) return;
  open_ = false;
  const Names names = NamesOf(kind_);
  const bool in_content = kind_ != Kind::kCall;
  Json done = Place(in_content);
  if (!in_content) done["name"] = item_["name"];
  done[names.field] = text_;
  if (kind_ == Kind::kContent) done["logprobs"] = Json::array();
  Event(names.done, std::move(done), out);
  if (in_content) {
    Json ended = Place(in_content);
    ended["part"] = PartJson();
    Event("response.content_part.done", std::move(ended), out);
    item_["content"].push_back(PartJson());
  } else {
    item_["arguments"] = std::move(text_);
  }
  item_["status"] = status;
  Json ended;
  ended["output_index"] = output_.size();
  ended["item"] = item_;
  Event("response.output_item.done", std::move(ended), out);
  output_.push_back(std::move(item_));
}

void ResponsesWriter::Add(const AnswerDelta& part, std::string* out) {
  const bool continues = open_ && ((part.kind == Kind::kArguments && kind_ == Kind::kCall) ||
                                   (part.kind == kind_ && part.kind != Kind::kCall));
  if (!continues) {
    CloseItem("completed", out);
    OpenItem(part, out);
  }
  if (part.kind == Kind::kCall) return;
  text_ += part.text;
  Json delta = Place(/*in_content=*/kind_ != Kind::kCall);
  delta["delta"] = part.text;
  if (kind_ == Kind::kContent) delta["logprobs"] = Json::array();
  Event(NamesOf(kind_).delta, std::move(delta), out);
}

Status ResponsesWriter::Take(size_t, GenerationEvent event, std::string* out) {
  if (options_.parser.reasons) {
    for (const TokenEvent& token : event.tokens) {
      tokens_.push_back(bytes_);
      bytes_ += token.bytes.size();
    }
  }
  Result<ChoiceDelta> delta = choice_.Take(std::move(event), /*want_tokens=*/false);
  if (!delta.ok()) {
    Json failed;
    failed["response"] = Response("failed");
    Json& error = failed["response"]["error"];
    error["code"] = "server_error";
    error["message"] = ToHttpError(delta.status()).body["error"]["message"];
    Event("response.failed", std::move(failed), out);
    return delta.status();
  }
  std::vector<AnswerDelta> parts;
  parser_.Push(delta->text, &parts);
  if (delta->ended) parser_.Finish(&parts);
  for (const AnswerDelta& part : parts) Add(part, out);
  if (!delta->ended) return OkStatus();
  // An answer without a word is a message without a word.
  if (!open_ && output_.empty()) OpenItem({Kind::kContent, ""}, out);
  const bool cut = choice_.end().reason == FinishReason::kLength;
  CloseItem(cut ? "incomplete" : "completed", out);
  return OkStatus();
}

Json ResponsesWriter::Usage() const {
  const lockstep::Usage& counts = choice_.end().usage;
  // A token belongs to the reasoning when it begins in it.
  const auto end = std::lower_bound(tokens_.begin(), tokens_.end(), parser_.reasoning_bytes());
  Json usage;
  usage["input_tokens"] = counts.prompt_tokens;
  usage["input_tokens_details"]["cached_tokens"] = counts.cached_tokens;
  usage["input_tokens_details"]["cache_write_tokens"] = 0;
  usage["output_tokens"] = counts.completion_tokens;
  usage["output_tokens_details"]["reasoning_tokens"] = end - tokens_.begin();
  usage["total_tokens"] = counts.prompt_tokens + counts.completion_tokens;
  return usage;
}

Json ResponsesWriter::Response(const char* status) const {
  Json response = options_.head;
  response["status"] = status;
  response["output"] = output_;
  return response;
}

void ResponsesWriter::Keep(Json* response) {
  if (options_.store == nullptr) return;
  StoredResponse stored{(*response)["id"].get<std::string>(), std::move(options_.owner),
                        DumpJson(*response), std::move(options_.items)};
  if (options_.store->Fits(stored)) {
    options_.store->Put(std::move(stored));
  } else {
    (*response)["store"] = false;
  }
}

std::string ResponsesWriter::End() {
  const bool cut = choice_.end().reason == FinishReason::kLength;
  Json response = Response(cut ? "incomplete" : "completed");
  if (cut) response["incomplete_details"]["reason"] = "max_output_tokens";
  if (!cut) response["completed_at"] = static_cast<int64_t>(std::time(nullptr));
  response["usage"] = Usage();
  Keep(&response);
  if (!options_.stream) return DumpJson(response);
  std::string out;
  Json last;
  last["response"] = std::move(response);
  Event(cut ? "response.incomplete" : "response.completed", std::move(last), &out);
  return out;
}

}  // namespace lockstep
