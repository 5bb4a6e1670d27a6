// Elementary functions in double with the same bits on every machine: fixed reductions and series
// in plain IEEE operations, because a C library's own results vary with its version and the CPU it
// picks code for. For tables made at load or once a step, not for inner loops (those are in
// kernels/). Errors stay below 1e-15 relative (absolute for sine and cosine near their zeros).
#pragma once

namespace lockstep {

double RealExp(double x);            // |x| <= 700
double RealLog(double x);            // finite x > 0
double RealPow(double x, double y);  // finite x > 0; |y log x| <= 700

struct SineCosine {
  double sine;
  double cosine;
};
SineCosine RealSinCos(double x);  // |x| <= 1e6

}  // namespace lockstep
