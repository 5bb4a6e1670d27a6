#include "model/layers/rope.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/real_math.h"
#include "model/layers/activations.h"

namespace lockstep {
namespace {

constexpr double kTwoPi = 6.283185307179586;
constexpr int32_t kTokensWorthSharing = 32;

}  // namespace

RopeFrequencies::RopeFrequencies(double base, int32_t dims) : base_(base), inverse_(dims / 2) {
  for (int32_t i = 0; i < half(); ++i) {
    inverse_[i] = static_cast<float>(RealPow(base, -2.0 * i / dims));
  }
}

void RopeFrequencies::ScaleLinear(float factor) {
  for (float& frequency : inverse_) frequency /= factor;
}

void RopeFrequencies::ScaleLlama3(const Llama3RopeScaling& scaling) {
  const double low_wavelength = scaling.original_context / scaling.low_freq_factor;
  const double high_wavelength = scaling.original_context / scaling.high_freq_factor;
  for (float& frequency : inverse_) {
    const double wavelength = kTwoPi / frequency;
    if (wavelength > low_wavelength) {
      frequency /= scaling.factor;
    } else if (wavelength >= high_wavelength) {
      const double smooth = (scaling.original_context / wavelength - scaling.low_freq_factor) /
                            (scaling.high_freq_factor - scaling.low_freq_factor);
      frequency =
          static_cast<float>((1.0 - smooth) * frequency / scaling.factor + smooth * frequency);
    }
  }
}

double YarnMscale(double factor, double mscale) {
  return factor > 1.0 ? 0.1 * mscale * RealLog(factor) + 1.0 : 1.0;
}

void RopeFrequencies::ScaleYarn(const YarnRopeScaling& scaling) {
  const int32_t dims = 2 * half();
  // The dimension that turns so many times over the original context.
  const auto dimension = [&](double turns) {
    return dims * RealLog(scaling.original_context / (turns * kTwoPi)) / (2.0 * RealLog(base_));
  };
  double low = dimension(scaling.beta_fast), high = dimension(scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dims - 1.0);
  if (low == high) high += 0.001;
  for (int32_t i = 0; i < half(); ++i) {
    const double divided = std::clamp((i - low) / (high - low), 0.0, 1.0);
    inverse_[i] =
        static_cast<float>(inverse_[i] * (1.0 - divided) + inverse_[i] / scaling.factor * divided);
  }
}

void RopeFrequencies::Divide(std::span<const float> factors) {
  LOCKSTEP_CHECK(factors.size() == inverse_.size());
  for (size_t i = 0; i < factors.size(); ++i) inverse_[i] /= factors[i];
}

Result<RopeTable> RopeTable::Allocate(Arena* arena, int32_t max_tokens, int32_t half) {
  RopeTable table;
  table.half_ = half;
  LOCKSTEP_ASSIGN_OR_RETURN(table.cosines_, arena->Take<float>(size_t(max_tokens) * half, "rope"));
  LOCKSTEP_ASSIGN_OR_RETURN(table.sines_, arena->Take<float>(size_t(max_tokens) * half, "rope"));
  return table;
}

void RopeTable::Fill(const RopeFrequencies& frequencies, std::span<const int32_t> positions,
                     Compute* compute) {
  const std::span<const float> inverse = frequencies.values();
  const float amplitude = frequencies.amplitude();
  ForRows(compute, static_cast<int32_t>(positions.size()), kTokensWorthSharing,
          [&](int32_t first, int32_t last) {
            for (int32_t t = first; t < last; ++t) {
              for (int32_t i = 0; i < half_; ++i) {
                const float angle = static_cast<float>(positions[t]) * inverse[i];
                const SineCosine value = RealSinCos(angle);
                cosines_[int64_t{t} * half_ + i] = static_cast<float>(value.cosine) * amplitude;
                sines_[int64_t{t} * half_ + i] = static_cast<float>(value.sine) * amplitude;
              }
            }
          });
}

}  // namespace lockstep
