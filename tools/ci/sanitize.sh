#!/usr/bin/env bash
# tools/ci/sanitize.sh asan|tsan: builds that preset's tests and runs them. asan takes the unit tests
# and those of hostile files and failing parts, tsan those of the folders with threads of their own.
set -euo pipefail
cd "$(dirname "$0")/../.."

preset=${1:?usage: tools/ci/sanitize.sh asan|tsan}
case "$preset" in
  asan) labels=(unit fuzz faults) ;;
  tsan) labels=(platform cache engine faults server) ;;
  *) echo "sanitize: no such preset: $preset" >&2 && exit 1 ;;
esac

export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1

# Some unit tests read the model from the cache.
tools/fetch_model.sh >/dev/null
tools/build.sh "$preset" "${labels[@]/#/tests_}"
mkdir -p build/results
pattern=$(IFS='|' && echo "^(${labels[*]})\$")
ctest --test-dir "build-$preset" -L "$pattern" -j "${JOBS:-$(nproc)}" --output-on-failure \
  --no-tests=error --output-junit "$PWD/build/results/ctest-$preset.xml"
