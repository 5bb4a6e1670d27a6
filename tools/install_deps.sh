#!/usr/bin/env bash
# Installs the Debian packages of the named groups (tools/debian_packages.txt; default: build test)
# and, unless a new enough cargo is there, Debian's own. Does nothing, fast, when all are present.
# Needs root or sudo only when something is missing; works without a terminal.
# LOCKSTEP_SKIP_DEPS=1 turns it off, for systems other than Debian.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -z "${LOCKSTEP_SKIP_DEPS:-}" ] || exit 0
groups=("$@")
[ ${#groups[@]} -gt 0 ] || groups=(build test)

die() {
  echo "install_deps: $*" >&2
  exit 1
}

command -v dpkg-query >/dev/null ||
  die "this is not a Debian system; install the equivalents of tools/debian_packages.txt by hand" \
    "and set LOCKSTEP_SKIP_DEPS=1"

wanted=()
while read -r group package _; do
  for g in "${groups[@]}"; do
    [ "$g" = "$group" ] && wanted+=("$package")
  done
done < <(grep -v '^#' tools/debian_packages.txt)
[ ${#wanted[@]} -gt 0 ] || die "no such group: ${groups[*]} (there are build, test, arm and fuzz)"

# Prints the packages among its arguments that are not installed. dpkg-query fails when it does not
# know a package at all, which is an answer here and no error.
missing_of() {
  local installed
  installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' "$@" 2>/dev/null || true)"
  for package in "$@"; do
    case "$installed" in
      *" installed:$package "*) ;;
      *) echo "$package" ;;
    esac
  done
}

mapfile -t missing < <(missing_of "${wanted[@]}")
if [[ " ${groups[*]} " == *" build "* ]] && ! tools/find_cargo.sh >/dev/null 2>&1; then
  missing+=(cargo-web rustc-web)
fi
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif sudo -n true 2>/dev/null || { [ -t 0 ] && command -v sudo >/dev/null; }; then
  as_root=(sudo)
else
  die "not root and sudo wants a password: run 'apt-get install ${missing[*]}' as root"
fi

echo "install_deps: installing ${missing[*]}"
# --no-remove: a conflict with what the user has (Debian's old rustc, say) ends in an error that
# names it; nothing of theirs is ever removed.
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0
  -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
"${apt[@]}" update </dev/null >/dev/null || die "apt-get update failed; see above"
"${apt[@]}" install --no-install-recommends --no-remove "${missing[@]}" </dev/null ||
  die "apt-get could not install ${missing[*]}; see above"

mapfile -t missing < <(missing_of "${wanted[@]}")
[ ${#missing[@]} -eq 0 ] || die "still missing after the installation: ${missing[*]}"
if [[ " ${groups[*]} " == *" build "* ]]; then
  tools/find_cargo.sh >/dev/null
fi
