#!/usr/bin/env bash
# Builds everything in release mode, then runs ctest and the Python tests against that build. The
# files that tests compare with are fetched first and found in the cache; Python tests also get the
# program and the model as LOCKSTEP_TEST_BINARY and LOCKSTEP_TEST_MODEL.
set -euo pipefail
cd "$(dirname "$0")/../.."

results=$PWD/build/results
mkdir -p "$results"
rm -f "$results"/ctest-release.xml "$results"/pytest.xml

model=$(tools/fetch_model.sh)
tools/fetch_llama_cpp_source.py >/dev/null
python=$(tools/python_env.sh)
tools/build.sh release all

ctest --test-dir build -j "${JOBS:-$(nproc)}" --output-on-failure --no-tests=error \
  --output-junit "$results/ctest-release.xml"
LOCKSTEP_TEST_BINARY=$PWD/build/lockstep LOCKSTEP_TEST_MODEL=$model \
  "$python" -m pytest tests -q --durations=5 -p no:cacheprovider --junitxml="$results/pytest.xml"
