#!/usr/bin/env bash
# The gate for other CPUs: in the release build wide registers stay in the kernels, and the tests
# labelled isa pass on emulated CPUs without AVX2 and without AVX-512, and cross-built on Arm's.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools/build.sh release lockstep tests_isa
tools/check_wide_registers.py build/lockstep
tools/run_qemu.sh Nehalem
tools/run_qemu.sh Haswell
tools/test_neon_emulated.sh
tools/check_wide_registers.py build-aarch64/src/kernels/kernels_gemm_test
