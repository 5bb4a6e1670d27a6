#!/usr/bin/env bash
# Fails when a C++ file of src/, tests/ or bench/ is not as clang-format 19 writes it; --fix
# rewrites it.
set -euo pipefail
cd "$(dirname "$0")/.."

files() {
  git ls-files --cached --others --exclude-standard -- src tests bench | grep -E '\.(h|cc)$' |
    while read -r file; do [ ! -f "$file" ] || echo "$file"; done
}

if [ "${1:-}" = --fix ]; then
  files | xargs -r clang-format-19 -i
  exit
fi

# One line a file: its differences are seen better in an editor, or after --fix.
bad=$(files | xargs -r clang-format-19 --dry-run 2>&1 |
  sed -n 's/^\([^ :]*\):[0-9].*/\1/p' | sort -u)
if [ -n "$bad" ]; then
  sed 's/^/check_format: not formatted (make format): /' <<<"$bad" >&2
  exit 1
fi
echo "check_format: ok"
