#!/usr/bin/env bash
# Builds everything in release mode, then runs ctest and the Python tests against that build.
# Results go to build/results as JUnit files. The tests find the program and the model through
# LOCKSTEP_BINARY and LOCKSTEP_MODEL.
set -euo pipefail
cd "$(dirname "$0")/../.."

results=$PWD/build/results
mkdir -p "$results"
rm -f "$results"/ctest-release.xml "$results"/pytest.xml

LOCKSTEP_MODEL=$(tools/fetch_model.sh)
python=$(tools/python_env.sh)
tools/build.sh release all
export LOCKSTEP_MODEL LOCKSTEP_BINARY=$PWD/build/lockstep LOCKSTEP_PYTHON=$python

ctest --test-dir build -j "${JOBS:-$(nproc)}" --output-on-failure --no-tests=error \
  --output-junit "$results/ctest-release.xml"
"$python" -m pytest tests -q --durations=5 -p no:cacheprovider --junitxml="$results/pytest.xml"
