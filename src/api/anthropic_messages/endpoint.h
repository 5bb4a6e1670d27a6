// POST /v1/messages and /v1/messages/count_tokens, as Anthropic's Messages API has them.
#pragma once

#include <string>

#include "api/endpoint.h"

namespace lockstep {

ApiResult HandleMessages(const ApiContext& context, const ApiCall& call);
ApiResult HandleCountTokens(const ApiContext& context, const ApiCall& call);

// {"type":"error","error":{"type","message"}}, and the event of that name.
ApiReply AnthropicErrorReply(const Status& status);
std::string AnthropicErrorEvent(const Status& status);

}  // namespace lockstep
