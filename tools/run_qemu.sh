#!/usr/bin/env bash
# tools/run_qemu.sh CPU [FOLDER]: runs the tests labelled isa of a release build (FOLDER: build, or
# build-aarch64) on an emulated CPU (qemu-x86_64 -cpu help lists them, or qemu-aarch64), each
# program's tests shared out over JOBS processes (default: one a core). An instruction that the CPU
# lacks ends a test with SIGILL.
set -euo pipefail
cd "$(dirname "$0")/.."

cpu=${1:?usage: tools/run_qemu.sh CPU [FOLDER]}
folder=${2:-build}
results=$PWD/build/results
mkdir -p "$results"

case "$folder" in
  build-aarch64) emulator=qemu-aarch64 ;;
  *) emulator=qemu-x86_64 ;;
esac
# Where Debian's cross compiler has the libraries that its programs load.
[ "$folder" = build ] || export QEMU_LD_PREFIX=/usr/${folder#build-}-linux-gnu

# The programs behind the label, from ctest's own description of them.
mapfile -t programs < <(ctest --test-dir "$folder" -L '^isa$' --show-only=json-v1 | python3 -c '
import json, sys
for test in json.load(sys.stdin)["tests"]:
    print(" ".join(test["command"]))')
if [ ${#programs[@]} -eq 0 ]; then
  echo "run_qemu: no test is labelled isa" >&2
  exit 1
fi

shards=${JOBS:-$(nproc)}
logs=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$logs"' EXIT

# One part of a program's tests.
run() {
  local shard=$1 name=$2
  shift 2
  env -u LOCKSTEP_ISA GTEST_TOTAL_SHARDS="$shards" GTEST_SHARD_INDEX="$shard" \
    "$emulator" -cpu "$cpu" "$@" --gtest_brief=1 \
    --gtest_output="xml:$results/qemu-$cpu-$name-$shard.xml" >"$logs/$shard" 2>&1
}

for program in "${programs[@]}"; do
  name=$(basename "${program%% *}")
  echo "run_qemu: $name on $cpu"
  pids=()
  for ((shard = 0; shard < shards; ++shard)); do
    # shellcheck disable=SC2086 # the command and its arguments are words
    run "$shard" "$name" $program &
    pids+=($!)
  done
  failed=
  for pid in "${pids[@]}"; do wait "$pid" || failed=$?; done
  cat "$logs"/*
  [ -z "$failed" ] || exit "$failed"
done
