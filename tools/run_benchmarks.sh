#!/usr/bin/env bash
# Runs every benchmark program of the release build, one after the other; arguments go to each.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t programs < <(find build/bench -type f -executable -not -path '*/CMakeFiles/*' | sort)
if [ ${#programs[@]} -eq 0 ]; then
  echo "run_benchmarks: no benchmark was built" >&2
  exit 1
fi
for program in "${programs[@]}"; do
  echo "== ${program#build/bench/}"
  "$program" "$@"
done
