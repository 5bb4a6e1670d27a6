#!/usr/bin/env bash
# Makes the Python environment of the tests once for each content of tests/requirements.txt, under
# the cache folder, and prints the path of its interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
  then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "python_env: no Python 3.11 with venv; on Debian: apt-get install python3-venv" >&2
  exit 1
fi

cache=${LOCKSTEP_CACHE:-$HOME/.cache/lockstep}
version=$("$python" -c 'import sys; print(sys.executable, sys.version)')
key=$(cat tests/requirements.txt - <<<"$version" | sha256sum | cut -c1-12)
environment=$cache/venv-$key

# The mark is written last: an installation that was cut short is made anew.
if [ ! -f "$environment/.complete" ]; then
  echo "python_env: making $environment" >&2
  rm -rf "$environment"
  mkdir -p "$cache"
  "$python" -m venv "$environment"
  "$environment/bin/python" -m pip --quiet install --disable-pip-version-check --no-input \
    --requirement tests/requirements.txt >&2 </dev/null || {
    echo "python_env: pip could not install tests/requirements.txt; see above" >&2
    exit 1
  }
  touch "$environment/.complete"
fi
echo "$environment/bin/python"
