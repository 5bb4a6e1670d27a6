// The fields that say what an answer must look like, of OpenAI (response_format), vLLM
// (structured_outputs, guided_*) and llama-server (grammar, json_schema). Thread-safe.
// Field by field: docs/structured_output.md.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/json.h"
#include "api/served_model.h"
#include "base/status.h"
#include "grammar/grammar.h"

namespace lockstep {

struct StructuredOutput {
  GrammarSpec spec;
  std::string path;  // of the field that holds it, for errors
};

// Absent: the answer is free text. Errors: kInvalidArgument or kUnimplemented naming the field; at
// most one of the fields may ask for something.
Result<std::optional<StructuredOutput>> ReadStructuredOutput(const Json& body);

// The same for the responses API, whose format is in `text.format`.
Result<std::optional<StructuredOutput>> ReadStructuredText(const Json& body);

// Errors: kInvalidArgument naming the keyword and its path below the field.
Result<std::shared_ptr<const Grammar>> CompileGrammar(const StructuredOutput& output,
                                                      const ServedModel& model);

// The same status for what lies at `path`; its own param, if any, leads on from there.
Status AtField(const Status& status, std::string path);

}  // namespace lockstep
