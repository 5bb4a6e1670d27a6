#!/usr/bin/env bash
# The gate for older CPUs, on the release build: wide registers stay in the kernels, and the tests
# labelled isa pass on emulated CPUs without AVX2 and without AVX-512.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools/build.sh release lockstep tests_isa
tools/check_wide_registers.py build/lockstep
tools/run_qemu.sh Nehalem
tools/run_qemu.sh Haswell
