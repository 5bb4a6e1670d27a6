#!/usr/bin/env python3
"""Time to first token of a long prompt: computed, and restored from disk after a restart.

    bench/prefix_disk.py MODEL [--tokens 13000] [--repeat 3] [--kv SCHEME] [--threads N]

For every repetition a server computes the prompt, is flushed, killed, and started anew; then the
same prompt is asked again. Prints the times and their ratio, and fails when the restored answer
differs, was not restored, or when the median ratio is below --at-least. The second server begins
with the files in the page cache; `--drop-caches` (root) makes it read them from the disk.

Only Python's standard library is needed.
"""

import argparse
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
BINARY = os.environ.get("LOCKSTEP_TEST_BINARY", str(ROOT / "build" / "lockstep"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, arguments, folder, log):
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        command = [BINARY, "serve", "--model", arguments.model, "--port", str(port),
                   "--context", str(arguments.tokens + 64), "--max-rows", "1",
                   "--prefix-dir", str(folder), "--prefix-dir-gib", "64"]
        for flag in ["kv", "threads"]:
            if getattr(arguments, flag):
                command += [f"--{flag}", str(getattr(arguments, flag))]
        self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        while True:
            if self.process.poll() is not None:
                sys.exit("the server ended:\n" + pathlib.Path(log.name).read_text())
            try:
                with urllib.request.urlopen(self.url + "/health"):
                    return
            except OSError:
                time.sleep(0.02)

    def post(self, path, body=None):
        data = json.dumps(body or {}).encode()
        request = urllib.request.Request(self.url + path, data,
                                         {"Content-Type": "application/json"})
        return urllib.request.urlopen(request, timeout=3600)

    def ask(self, prompt):
        """Seconds to the first token, the answer, and how many tokens were cached."""
        begin = time.perf_counter()
        first, text, usage = None, "", None
        with self.post("/v1/completions", {
                "prompt": prompt, "max_tokens": 16, "temperature": 0, "stream": True,
                "stream_options": {"include_usage": True}}) as answer:
            for line in answer:
                if not line.startswith(b"data: {"):
                    continue
                event = json.loads(line[6:])
                if event["choices"]:
                    first = first or time.perf_counter() - begin
                    text += event["choices"][0]["text"]
                usage = event.get("usage") or usage
        return first, text, usage["prompt_tokens_details"]["cached_tokens"]

    def kill(self):
        self.process.kill()
        self.process.wait()


def once(arguments, prompt, folder, log):
    shutil.rmtree(folder, ignore_errors=True)
    first = Server(arguments, folder, log)
    first.ask(prompt[:64])  # weights and buffers are warm
    cold, text, _ = first.ask(prompt)
    begin = time.perf_counter()
    first.post("/admin/cache/flush").close()
    flushed = time.perf_counter() - begin
    first.kill()
    if arguments.drop_caches:
        subprocess.run(["sync"], check=True)
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("1")
    second = Server(arguments, folder, log)
    second.ask([token + 1 for token in prompt[:64]])
    restored, again, cached = second.ask(prompt)
    second.kill()
    size = sum(file.stat().st_size for file in folder.glob("*.lsprefix"))
    print(f"computed {cold:8.3f} s   restored {restored:7.3f} s   {cold / restored:6.1f} times   "
          f"{cached} of {len(prompt)} tokens, {size / 2**20:.0f} MiB, flush {flushed:.2f} s",
          flush=True)
    if again != text:
        sys.exit("the restored answer differs")
    if cached < len(prompt) - 64:
        sys.exit("the prompt was not restored")
    return cold / restored


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=13000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--kv")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--at-least", type=float, default=20)
    parser.add_argument("--drop-caches", action="store_true")
    parser.add_argument("--folder", help="where the prefixes are kept; default: a temporary one")
    arguments = parser.parse_args()
    # Ids that every vocabulary has, without a period.
    prompt = [100 + (i * i * 31 + i * 7) % 900 for i in range(arguments.tokens)]
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        with open(pathlib.Path(temporary) / "log", "wb") as log:
            ratios = [once(arguments, prompt, pathlib.Path(temporary) / "prefixes", log)
                      for _ in range(arguments.repeat)]
    median = statistics.median(ratios)
    print(f"median: the first token comes {median:.1f} times sooner")
    return 0 if median >= arguments.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
