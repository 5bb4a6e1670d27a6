#!/usr/bin/env python3
"""Compares lockstep with other engines on this machine: same weights, same threads, interleaved.

Fetches and builds the peers at pinned versions and makes the weights when they are not there, runs
every work of every model with every peer in turn, round after round, and prints the ratios with
their spread. A part of it runs in minutes:

    bench_peers.py --models smollm2-q4_0 --work prompt decode-128 --rounds 3 --json part1.json
    bench_peers.py --from part1.json part2.json
"""

import argparse
import json
import os
import pathlib
import signal
import sys

import limits
import table
import works
from common import CACHE, Unavailable, say
from peer_llama_cpp import LlamaCpp
from peer_lockstep import Lockstep
from peer_openvino import OpenVino, OpenVinoShortSteps
from peer_vllm import Vllm
from weights import Weights
from works import GROUPS, MODELS, WORKS, expand

PEERS = {peer.name: peer for peer in (Lockstep, LlamaCpp, OpenVino, OpenVinoShortSteps, Vllm)}


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), metavar="MODEL",
                        help=", ".join(MODELS))
    parser.add_argument("--work", nargs="+", default=["all"],
                        help=", ".join([*GROUPS, *WORKS]))
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS), metavar="PEER",
                        help=", ".join(PEERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=pathlib.Path, help="keep the samples in this file")
    parser.add_argument("--from", nargs="+", type=pathlib.Path, dest="sources", metavar="FILE",
                        help="measure nothing; print the table of the samples in these files")
    parser.add_argument("--prepare", action="store_true",
                        help="measure nothing; fetch and build what the rest of the flags need")
    parser.add_argument("--lockstep", type=pathlib.Path, help="another binary than build/lockstep")
    settings = parser.parse_args()
    settings.work = expand(settings.work)
    settings.log_folder = CACHE / "logs"
    settings.log_folder.mkdir(parents=True, exist_ok=True)
    return settings


def prepared(settings):
    """The weights, which peers have which ready ((peer, model) -> path), and what is left out."""
    builder = LlamaCpp(settings)
    builder.prepare()
    weights = Weights(builder.bin / "llama-quantize")
    ready, skipped = {}, []
    for name in settings.peers:
        peer = PEERS[name](settings)
        try:
            peer.prepare()
        except Unavailable as reason:
            say(f"without {name}: {reason}")
            skipped.append({"peer": name, "model": "all", "work": "all", "reason": str(reason)})
            continue
        for model in settings.models:
            try:
                files = peer.weights(weights, model)
            except Unavailable as reason:
                say(f"{model} without {name}: {reason}")
                skipped.append({"peer": name, "model": model, "work": "all", "reason": str(reason)})
                continue
            if files is not None:
                ready[peer, model] = files
    weights.words()
    return weights, ready, skipped


def machine():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown CPU"


def measure(settings, words, ready, skipped, bytes_a_token):
    run = {"machine": machine(), "threads": settings.threads, "limits": [], "samples": [],
           "skipped": skipped, "bytes_a_token": bytes_a_token}
    for number in range(settings.rounds):
        run["limits"].append(limits.measure())
        for model in settings.models:
            peers = [peer for peer, its_model in ready if its_model == model]
            # Each round begins with another peer, so that none is always first.
            peers = peers[number % len(peers):] + peers[:number % len(peers)]
            for work in settings.work:
                for peer in peers:
                    if work in getattr(peer, "works", WORKS):
                        one(run, number, peer, model, work, ready[peer, model], words)
                        if settings.json:  # at once: a run that is cut short keeps what it has
                            settings.json.write_text(json.dumps(run, indent=1))
    return run


def one(run, number, peer, model, work, files, words):
    try:
        cells = peer.run(files, work, words)
    except (Unavailable, RuntimeError, OSError) as reason:
        say(f"{model} {work} {peer.name}: {reason}")
        run["skipped"].append({"peer": peer.name, "model": model, "work": work,
                               "reason": str(reason)})
        return
    for cell, value in cells.items():
        say(f"round {number + 1} {model} {cell}: {peer.name} {table.number(value)}")
        run["samples"].append({"peer": peer.name, "model": model, "round": number, "cell": cell,
                               "value": value})


def main():
    settings = arguments()
    if settings.sources:
        runs = [json.loads(source.read_text()) for source in settings.sources]
    else:
        weights, ready, skipped = prepared(settings)
        if settings.prepare:
            return 0
        bytes_a_token = {m: works.bytes_a_token(m, weights.gguf(m).stat().st_size)
                         for m in settings.models}
        runs = [measure(settings, weights.words(), ready, skipped, bytes_a_token)]
    print(table.render(runs))
    return 0


if __name__ == "__main__":
    # A SIGTERM unwinds, so that servers are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except Unavailable as reason:
        sys.exit(f"bench-peers: {reason}")
