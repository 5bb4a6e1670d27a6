#!/usr/bin/env bash
# Prints the path of a cargo that can build rust/: $CARGO, the one on PATH, rustup's, or Debian's
# cargo-web (which installs as /usr/bin/cargo). Fails, saying what to do, when none is new enough.
set -euo pipefail

# cxx 1.0.205, the most demanding crate in rust/Cargo.lock, needs Rust 1.88.
minimum=1.88

seen=()
for cargo in "${CARGO:-}" "$(command -v cargo || true)" "${HOME:-/nonexistent}/.cargo/bin/cargo" \
  /usr/bin/cargo; do
  [ -n "$cargo" ] && [ -x "$cargo" ] || continue
  # "cargo 1.96.0 (...)"; a rustup proxy without a toolchain prints no version.
  version=$("$cargo" --version 2>/dev/null | sed -n 's/^cargo \([0-9]*\.[0-9]*\).*/\1/p')
  if [ -n "$version" ] && printf '%s\n%s\n' "$minimum" "$version" | sort -V -C; then
    echo "$cargo"
    exit 0
  fi
  seen+=("$cargo (${version:-no version})")
done

{
  echo "find_cargo: the text library needs cargo $minimum or newer; found: ${seen[*]:-none}."
  echo "On Debian 12 with the security suite: apt-get install cargo-web rustc-web"
  echo "Elsewhere: install a stable Rust toolchain, or set CARGO to its cargo."
} >&2
exit 1
