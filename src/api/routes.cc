#include "api/routes.h"

#include "api/admin/cache_flush.h"
#include "api/admin/drain.h"
#include "api/anthropic_messages/endpoint.h"
#include "api/health/endpoint.h"
#include "api/metrics/endpoint.h"
#include "api/models/endpoint.h"
#include "api/openai_chat/endpoint.h"
#include "api/openai_completions/endpoint.h"
#include "api/openai_responses/endpoint.h"
#include "api/openapi/endpoint.h"
#include "api/tokenize/endpoint.h"

namespace lockstep {
namespace {

constexpr Route kRoutes[] = {
    {"POST", "/v1/chat/completions", HandleChatCompletions, true},
    {"POST", "/v1/completions", HandleCompletions, true},
    {"POST", "/v1/responses", HandleResponses, true, ErrorReply, ResponsesErrorEvent},
    {"GET", "/v1/responses/*/input_items", HandleResponseItems},
    {"GET", "/v1/responses/*", HandleResponse},
    {"DELETE", "/v1/responses/*", HandleResponseDelete},
    {"POST", "/v1/messages", HandleMessages, true, AnthropicErrorReply, AnthropicErrorEvent},
    {"POST", "/v1/messages/count_tokens", HandleCountTokens, true, AnthropicErrorReply,
     AnthropicErrorEvent},
    {"GET", "/v1/models", HandleModels},
    {"GET", "/v1/models/*", HandleModel},
    {"POST", "/tokenize", HandleTokenize, true},
    {"POST", "/detokenize", HandleDetokenize, true},
    {"POST", "/apply_template", HandleApplyTemplate, true},
    {"POST", "/apply-template", HandleApplyTemplate, true},
    {"POST", "/v1/apply_template", HandleApplyTemplate, true},
    {"POST", "/admin/cache/flush", HandleCacheFlush, true},
    {.method = "GET", .path = "/health", .handler = HandleHealth, .open = true},
    {"GET", "/version", HandleVersion},
    {.method = "GET", .path = "/openapi.json", .handler = HandleOpenApi, .open = true},
    {"POST", "/admin/drain", HandleDrain},
    {"GET", "/admin/drain", HandleDrainState},
    {.method = "GET", .path = "/metrics", .handler = HandleMetrics, .open = true},
};

}  // namespace

std::span<const Route> Routes() { return kRoutes; }

}  // namespace lockstep
