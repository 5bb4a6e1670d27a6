#!/usr/bin/env bash
# tools/build.sh PRESET TARGET...: configures the preset's build folder when it is new or its inputs
# changed, then builds the targets (default: all). A build with nothing to do takes a fraction of a
# second. JOBS limits the compilers that run at once.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:?usage: tools/build.sh PRESET TARGET...}
shift
case "$preset" in
  release) directory=build ;;
  *) directory=build-$preset ;;
esac

cargo=$(tools/find_cargo.sh)
options=(-DLOCKSTEP_CARGO="$cargo")
# Checkouts that are never built at the same time may share what cargo built.
if [ -n "${LOCKSTEP_CARGO_TARGET_DIR:-}" ]; then
  options+=(-DLOCKSTEP_CARGO_TARGET_DIR="$LOCKSTEP_CARGO_TARGET_DIR")
fi
# cargo runs the first rustc on PATH: its own, not one of another toolchain.
export PATH="${cargo%/*}:$PATH"

# What the compiler cache holds fits every checkout, wherever it lies.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

stamp=$directory/.configured
inputs=$(cat CMakePresets.json <(echo "${options[*]} ${CC:-} ${CXX:-} ${CXXFLAGS:-}") | sha256sum)
if [ ! -f "$directory/build.ninja" ] || [ "$(cat "$stamp" 2>/dev/null)" != "$inputs" ]; then
  cmake --preset "$preset" "${options[@]}"
  echo "$inputs" >"$stamp"
fi
exec ninja -C "$directory" -j "${JOBS:-$(nproc)}" "$@"
