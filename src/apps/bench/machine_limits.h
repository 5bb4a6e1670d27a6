// The limits of this machine, measured in the run that compares with them: operations of one core
// in loops that touch registers only, and bytes of a plain read. Each takes tenths of a second.
#pragma once

#include <cstddef>
#include <string_view>

namespace lockstep::bench {

struct Limits {
  double int8_macs_per_s = 0;  // multiply-adds of the widest 8-bit instruction the table uses
  double int16_macs_per_s = 0;
  double f32_macs_per_s = 0;
};

// Of a table of kernels (kernels.h), by its name; zeros where it has no such instruction.
Limits MeasureLimits(std::string_view isa);

// Bytes per second that `threads` threads read together, each its own `bytes`, huge pages asked
// for: the best of several sweeps, by the clock on the wall.
double ReadBandwidth(size_t bytes, int threads);

// CPU seconds of this thread.
double ThreadSeconds();

}  // namespace lockstep::bench
