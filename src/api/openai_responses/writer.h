// Writes the answer of POST /v1/responses: one response, or its events in the order
// response.created, response.in_progress, then for each item response.output_item.added, its parts
// and deltas, their ends and response.output_item.done, then response.completed, incomplete or
// failed. The last event has the response that is not streamed. Keeps it, when it was asked to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/choice.h"
#include "api/endpoint.h"
#include "api/response_store.h"
#include "text/answer_parser.h"

namespace lockstep {

struct ResponsesAnswerOptions {
  std::string unique;  // the answer's own part of its ids
  Json head;           // the response, but for what only the answer knows
  bool stream = false;
  AnswerParserOptions parser;
  std::shared_ptr<ResponseStore> store;  // null: it is not kept
  std::string owner;                     // as StoredResponse has them
  std::string items;
};

class ResponsesWriter : public AnswerWriter {
 public:
  explicit ResponsesWriter(ResponsesAnswerOptions options);

  std::string Begin() override;
  Status Take(size_t index, GenerationEvent event, std::string* out) override;
  std::string End() override;

 private:
  // An event of a stream; nothing where there is none.
  void Event(const char* name, Json data, std::string* out);
  // Where an event of the open item belongs.
  Json Place(bool in_content) const;

  void Add(const AnswerDelta& part, std::string* out);
  void OpenItem(const AnswerDelta& part, std::string* out);
  void CloseItem(const char* status, std::string* out);
  Json PartJson() const;  // of the open item's text

  Json Response(const char* status) const;
  Json Usage() const;
  void Keep(Json* response);

  ResponsesAnswerOptions options_;
  Choice choice_;
  AnswerParser parser_;
  size_t sequence_ = 0;
  Json output_ = Json::array();
  // The item being written.
  bool open_ = false;
  AnswerDelta::Kind kind_ = AnswerDelta::Kind::kContent;
  Json item_;
  std::string text_;
  size_t calls_ = 0;
  // Of a model that reasons: where each token begins in the answer's bytes.
  std::vector<size_t> tokens_;
  size_t bytes_ = 0;
};

}  // namespace lockstep
