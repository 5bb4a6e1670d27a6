// A kernel whose arithmetic depends on the number of rows: what the promise's checks must catch.
#pragma once

#include "kernels/kernels.h"

namespace lockstep {

// The best table with such a product of floats. The same for all callers.
kernels::KernelTable CrookedTable();

}  // namespace lockstep
