// LOCKSTEP_CHECK: ends the process when an invariant of our own is broken. Never reachable from a
// request or a file: those get a Status.
#pragma once

#include <cstdio>
#include <cstdlib>

#define LOCKSTEP_CHECK(condition)                                                            \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      std::fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)
