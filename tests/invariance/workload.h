// What the invariance tests serve their requests with: an engine over a checkpoint, made for one
// run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/verify/mixed_requests.h"
#include "apps/verify/serve_requests.h"
#include "engine/engine.h"
#include "engine/request.h"
#include "kernels/attention.h"
#include "kernels/kernels.h"

namespace lockstep {

// The path of one of the tiny checkpoints.
std::string TinyModel(const std::string& name);

// How one run serves the requests.
struct Serving {
  const kernels::KernelTable* kernels = nullptr;
  int32_t threads = 1;
  kernels::KvScheme kv = {};
  int32_t step_tokens = 128;
  int32_t max_rows = 16;
  std::string prefix_dir = {};  // folder that keeps prefixes; empty: none
  bool alone = false;           // one request at a time, in an engine of its own batch
  uint64_t cuts_and_order = 0;  // not 0: random chunk cuts and random arrival from this seed
};

// `cut` as EngineOptions::chunk_cut, instead of what `serving` says.
Result<std::unique_ptr<Engine>> MakeEngine(const std::string& model_path, const Serving& serving,
                                           std::function<int32_t(int32_t)> cut = {});

// Every answer's bytes (ServedAnswer), in the order of `requests`. Empty with a test failure when
// something could not be done.
std::vector<std::string> Serve(const std::string& model_path, const Serving& serving,
                               const std::vector<GenerationRequest>& requests);

// One request after the other on one engine that keeps prefixes.
std::vector<ServedAnswer> ServeInTurn(const std::string& model_path, const Serving& serving,
                                      const std::vector<GenerationRequest>& requests);

}  // namespace lockstep
