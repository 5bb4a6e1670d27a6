#!/usr/bin/env bash
# tools/serve.sh MODEL HOST PORT [FLAG...]: runs the release binary's server in the foreground and,
# once /health answers 200, prints the address and a request to paste.
set -euo pipefail
cd "$(dirname "$0")/.."

model=${1:?usage: tools/serve.sh MODEL HOST PORT} host=${2:?} port=${3:?}
shift 3

# The status of GET /health, or nothing. Written with bash alone, so that no client is needed.
health() {
  local status
  {
    exec 3<>"/dev/tcp/$host/$port" &&
      printf 'GET /health HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$host" >&3 &&
      read -r -t 2 _ status _ <&3 && echo "$status"
  } 2>/dev/null
}

announce() {
  local server=$1
  until [ "$(health || true)" = 200 ]; do
    kill -0 "$server" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -0 "$server" 2>/dev/null || return 0
  cat >&2 <<TEXT

lockstep listens on http://$host:$port. Ctrl-C ends it. To try it, paste this in another terminal:

curl -N http://$host:$port/v1/chat/completions -H 'Content-Type: application/json' -d '{
  "messages": [{"role": "user", "content": "Name three colours of the rainbow."}],
  "max_tokens": 64, "stream": true}'

TEXT
}

# If something answers on the port already, the server itself says so and ends; a watcher would
# take the other program for ours.
if ! (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null; then
  announce $$ &
fi
exec build/lockstep serve --model "$model" --host "$host" --port "$port" "$@"
