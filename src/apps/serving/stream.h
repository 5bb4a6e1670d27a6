// Runs one request on an engine and hands its events to the calling thread as they come; for
// commands that print an answer while it grows.
#pragma once

#include <atomic>
#include <functional>

#include "base/status.h"
#include "engine/engine.h"

namespace lockstep {

// Replaces request.sink. Calls `show` for every event, the last one included. When `*stop` becomes
// true the request is cancelled and its end still comes. Errors: Engine::Submit's.
Result<GenerationEnd> Stream(Engine& engine, GenerationRequest request,
                             const std::atomic<bool>* stop,
                             const std::function<void(const GenerationEvent&)>& show);

}  // namespace lockstep
