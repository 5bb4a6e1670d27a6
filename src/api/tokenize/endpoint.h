// POST /tokenize, of a text or of a conversation, and POST /detokenize, in vLLM's shape; POST
// /apply_template, which shows the text that a conversation becomes, in llama-server's.
#pragma once

#include "api/endpoint.h"

namespace lockstep {

ApiResult HandleTokenize(const ApiContext& context, const ApiCall& call);
ApiResult HandleDetokenize(const ApiContext& context, const ApiCall& call);
ApiResult HandleApplyTemplate(const ApiContext& context, const ApiCall& call);

}  // namespace lockstep
