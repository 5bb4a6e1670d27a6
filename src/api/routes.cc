#include "api/routes.h"

#include "api/admin/endpoint.h"
#include "api/anthropic_messages/endpoint.h"
#include "api/health/endpoint.h"
#include "api/metrics/endpoint.h"
#include "api/models/endpoint.h"
#include "api/openai_chat/endpoint.h"
#include "api/openai_completions/endpoint.h"
#include "api/tokenize/endpoint.h"

namespace lockstep {
namespace {

constexpr Route kRoutes[] = {
    {"POST", "/v1/chat/completions", HandleChatCompletions, true},
    {"POST", "/v1/completions", HandleCompletions, true},
    {"POST", "/v1/messages", HandleMessages, true, AnthropicErrorReply, AnthropicErrorEvent},
    {"POST", "/v1/messages/count_tokens", HandleCountTokens, true, AnthropicErrorReply,
     AnthropicErrorEvent},
    {"GET", "/v1/models", HandleModels},
    {"GET", "/v1/models/*", HandleModel},
    {"POST", "/tokenize", HandleTokenize, true},
    {"POST", "/detokenize", HandleDetokenize, true},
    {"POST", "/admin/cache/flush", HandleCacheFlush, true},
    {.method = "GET", .path = "/health", .handler = HandleHealth, .open = true},
    {"GET", "/version", HandleVersion},
    {.method = "GET", .path = "/metrics", .handler = HandleMetrics, .open = true},
};

}  // namespace

std::span<const Route> Routes() { return kRoutes; }

}  // namespace lockstep
