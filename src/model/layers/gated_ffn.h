// GatedFfn: the gated feed-forward, down(act(gate x) * (up x)). Immutable after loading;
// thread-safe.
//
// Source: Shazeer, "GLU Variants Improve Transformer" (2020).
#pragma once

#include <cstdint>

#include "model/layers/decoder_buffers.h"
#include "model/layers/linear.h"

namespace lockstep {

struct GatedFfn {
  Linear gate;  // [d_ff, d_model]
  Linear up;    // [d_ff, d_model]
  Linear down;  // [d_model, d_ff]
  Gate activation = Gate::kSilu;

  // From b->normed to b->gated, which `down` is to multiply.
  void Run(int32_t tokens, DecoderBuffers* b, Compute* compute) const {
    MultiplyGated(b->normed, tokens, gate, up, activation, b->gated.f32, b->up, compute);
    b->gated.Quantize(tokens, compute);
  }
};

}  // namespace lockstep
