"""Compares `lockstep score` with llama.cpp, live, on a GGUF file and a text of yours.

    python tools/reference/compare_llama_cpp.py MODEL.gguf [TEXT_FILE] [--length N] [-- FLAGS]

FLAGS go to `lockstep score` (for example `-- --compute f32`). LOCKSTEP_TEST_BINARY names the binary.
llama.cpp runs with its defaults: quantised activations, f16 keys and values. So this shows how far
two quantised implementations are apart, not which one is right; for that see the goldens.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import paths
import score_golden
import witnesses

LISTED, TOP, TAIL = 4096, 32, 16


def lockstep_score(model, ids, top, flags):
    binary = os.environ.get("LOCKSTEP_TEST_BINARY", paths.ROOT / "build" / "lockstep")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as tokens:
        json.dump(ids, tokens)
        tokens.flush()
        command = [binary, "score", model, "--tokens-file", tokens.name, "--top", top, "--json"]
        done = subprocess.run([str(c) for c in command + flags], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["top"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path, nargs="?", default=paths.TEXT)
    parser.add_argument("--length", type=int, default=512, help="tokens a sequence")
    parser.add_argument("flags", nargs="*", help="after --: flags of lockstep score")
    options = parser.parse_args()

    peer = witnesses.llama_cpp_gguf(options.model)
    tokenizer = witnesses.llama_cpp_model(options.model, vocab_only=True)
    ids = tokenizer.tokenize(options.text.read_bytes(), add_bos=False, special=True)
    random = np.random.Generator(np.random.PCG64(1))
    divergences, agreements = [], []
    for begin in range(0, len(ids), options.length):
        part = ids[begin : begin + options.length]
        logprobs = peer(part)
        sequence = score_golden.take("text", part, logprobs, TOP, TAIL, random)
        top = min(LISTED, logprobs.shape[1])
        ours = lockstep_score(options.model, part, top, options.flags)
        kl, best = score_golden.divergence(sequence, ours)
        divergences.append(kl)
        agreements.append(best)
        print(f"tokens {begin}-{begin + len(part)}: KL {kl.mean():.3e}, "
              f"same best {best.mean():.4f}", flush=True)
    kl, best = np.concatenate(divergences), np.concatenate(agreements)
    print(f"all {len(kl)}: KL(llama.cpp || lockstep) {kl.mean():.3e}, same best {best.mean():.4f}")


if __name__ == "__main__":
    main()
