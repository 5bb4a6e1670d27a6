#!/usr/bin/env bash
# Builds the kernels for 64-bit Arm with Debian's cross compiler (tools/install_deps.sh test arm) and
# runs their tests under qemu: on a CPU with everything, on one with dotprod but without i8mm, and on
# one with neither, which is left with plain code.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/build.sh aarch64 tests_isa
# A table at a time: the others' tests would be the same.
GTEST_FILTER='*neon_i8mm*' tools/run_qemu.sh max build-aarch64
GTEST_FILTER='-*scalar*' tools/run_qemu.sh neoverse-n1 build-aarch64
tools/run_qemu.sh cortex-a72 build-aarch64
