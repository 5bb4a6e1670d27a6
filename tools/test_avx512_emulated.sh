#!/bin/sh
# Runs the kernel tests of the AVX-512 table on an emulated CPU, for machines that have none:
#   tools/test_avx512_emulated.sh BUILD_DIR [elementwise | attention | gemm]...
# Builds static test programs in BUILD_DIR (the emulator has no dynamic linker) and runs them under
# run_avx512_emulated.py. PYTHON names a Python that has the package bochscpu-python (0.4.0); where the
# C library is older than 2.38, the few symbols that the package misses are added.
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
build=$1
shift
[ $# -gt 0 ] || set -- elementwise attention
mkdir -p "$build"
build=$(cd "$build" && pwd)

cat > "$build/isoc23.c" <<'C'
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
unsigned long long __isoc23_strtoull(const char* s, char** end, int base) {
  return strtoull(s, end, base);
}
int __isoc23_sscanf(const char* s, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int count = vsscanf(s, format, arguments);
  va_end(arguments);
  return count;
}
C
gcc -shared -fPIC -O1 -o "$build/isoc23.so" "$build/isoc23.c"

compiler="g++"
command -v ccache >/dev/null && compiler="ccache g++"
flags="-std=c++20 -O2 -ffp-contract=off -fno-math-errno -DFMT_HEADER_ONLY -I$source/src"
objects=
for file in "$source"/src/kernels/*.cc "$source"/src/kernels/isa/*/*.cc \
            "$source"/src/platform/cpu_features.cc "$source"/src/base/status.cc \
            "$source"/src/base/log.cc; do
  case $file in *_test.cc) continue ;; esac
  object=$build/$(echo "${file#"$source"/src/}" | tr / _).o
  $compiler $flags -c "$file" -o "$object"
  objects="$objects $object"
done
for name in "$@"; do
  $compiler $flags -c "$source/src/kernels/${name}_test.cc" -o "$build/$name.o"
  g++ -static -no-pie -o "$build/${name}_test" "$build/$name.o" $objects -lgtest -lgtest_main
  LD_PRELOAD="$build/isoc23.so" "${PYTHON:-python3}" "$source/tools/run_avx512_emulated.py" \
    "$build/${name}_test" "--gtest_filter=${FILTER:-*avx512*}"
done
