// Rotary position embedding: which frequencies a model rotates with, and their sines and cosines
// for the positions of a step.
//
// Source: Su et al., "RoFormer" (2021); Peng et al., "YaRN" (2023); the "llama3", "linear" and
// "yarn" scalings as transformers defines them in modeling_rope_utils. Angles are formed in f32, as
// the reference implementations form them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "model/compute.h"

namespace lockstep {

// Llama 3's scaling of low frequencies.
struct Llama3RopeScaling {
  float factor = 1.0f;
  float low_freq_factor = 1.0f;
  float high_freq_factor = 4.0f;
  float original_context = 8192.0f;
};

// YaRN's blend of frequencies that are kept and frequencies that are divided.
struct YarnRopeScaling {
  float factor = 1.0f;
  float original_context = 4096.0f;
  float beta_fast = 32.0f;  // rotations over the original context from which on all is kept
  float beta_slow = 1.0f;   // and up to which all is divided
  bool truncate = true;     // the ramp begins and ends at whole dimensions
};
// 0.1 mscale ln(factor) + 1; 1 for a factor of at most 1.
double YarnMscale(double factor, double mscale);

class RopeFrequencies {
 public:
  // base^(-2i / dims) for i < dims / 2. REQUIRES: dims even.
  RopeFrequencies(double base, int32_t dims);

  void ScaleLinear(float factor);  // every frequency divided by `factor`
  void ScaleLlama3(const Llama3RopeScaling& scaling);
  void ScaleYarn(const YarnRopeScaling& scaling);
  void ScaleAmplitude(float factor) { amplitude_ *= factor; }
  void Divide(std::span<const float> factors);  // one factor a frequency (GGUF's rope_freqs)

  int32_t half() const { return static_cast<int32_t>(inverse_.size()); }
  std::span<const float> values() const { return inverse_; }
  float amplitude() const { return amplitude_; }  // sines and cosines are multiplied by it

 private:
  double base_;
  std::vector<float> inverse_;
  float amplitude_ = 1.0f;
};

// The sines and cosines of a step's tokens, shared by all layers.
class RopeTable {
 public:
  static Result<RopeTable> Allocate(Arena* arena, int32_t max_tokens, int32_t half);
  void Fill(const RopeFrequencies& frequencies, std::span<const int32_t> positions,
            Compute* compute);

  const float* cosines(int32_t token) const { return cosines_ + int64_t{token} * half_; }
  const float* sines(int32_t token) const { return sines_ + int64_t{token} * half_; }
  int32_t half() const { return half_; }

 private:
  float* cosines_ = nullptr;  // [T, half]
  float* sines_ = nullptr;    // [T, half]
  int32_t half_ = 0;
};

}  // namespace lockstep
