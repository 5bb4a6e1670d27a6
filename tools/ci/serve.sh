#!/usr/bin/env bash
# What a newcomer does first: `make serve`, the request it prints, an end by signal; then a second
# start, which must be quick. Fails when the answer is empty or the server does not end cleanly.
set -euo pipefail
cd "$(dirname "$0")/../.."

longest_start_ms=5000 # two seconds on an idle machine; this one may be busy

port=$(python3 -c 'import socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    print(s.getsockname()[1])')
log=$(mktemp)
pid=
trap '[ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null || true; rm -f "$log"' EXIT

die() {
  echo "serve: $*" >&2
  cat "$log" >&2
  exit 1
}

# Runs its arguments in the background as $pid and waits for the printed address.
start() {
  : >"$log"
  "$@" >"$log" 2>&1 &
  pid=$!
  until grep -q "lockstep listens on http://127.0.0.1:$port" "$log"; do
    kill -0 "$pid" 2>/dev/null || die "$* ended before it served"
    sleep 0.05
  done
}

start make serve PORT="$port"
# The printed request, as it stands.
request=$(sed -n '/^curl /,/}.$/p' "$log")
[ -n "$request" ] || die "no request to paste was printed"
answer=$(bash -c "$request" 2>/dev/null) || die "the printed request failed"
grep -q '"content":"[^"]' <<<"$answer" || die "the printed request got no text: $answer"
grep -q 'data: \[DONE\]' <<<"$answer" || die "the stream did not end: $answer"
kill -TERM "$pid"
wait "$pid" || true # make reports the signal
pid=

begin=$(date +%s%N)
start make serve PORT="$port"
took=$((($(date +%s%N) - begin) / 1000000))
kill -TERM "$pid"
wait "$pid" || true
pid=
[ "$took" -le "$longest_start_ms" ] || die "the second start took $took ms"

# Without make between, the exit code is the server's own.
start build/lockstep serve --model "$(tools/fetch_model.sh)" --port "$port" --example
kill -TERM "$pid"
wait "$pid" || die "the server ended with code $? after SIGTERM"
pid=
echo "serve: ok, the second start took $took ms"
