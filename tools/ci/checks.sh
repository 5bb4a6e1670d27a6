#!/usr/bin/env bash
# The checks that need no build: seconds at most.
set -euo pipefail
cd "$(dirname "$0")/../.."

failed=0
for check in check_layers.py check_sizes.py check_words.py check_format.sh; do
  tools/"$check" || failed=1
done
exit $failed
