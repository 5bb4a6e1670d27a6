"""Writes tests/conformance/goldens/smollm2_q4_1.npz.

Reference: transformers in float32 on the dequantised GGUF. Second witness: llama.cpp on the GGUF
itself, from which the golden's truncation is checked too: the divergence that the stored golden
yields must be within 5 % of the one over the whole vocabulary.
"""

import hashlib
import re
import sys

import numpy as np

import paths
import score_golden
import witnesses

LENGTH, TOP, TAIL = 512, 32, 16
OURS_LISTED = 4096  # how many tokens a position the conformance test asks lockstep for


def sections():
    parts = re.split(r"^=== (\w+)\n", paths.TEXT.read_text(encoding="utf-8"), flags=re.M)[1:]
    return [(name, text.strip("\n")) for name, text in zip(parts[::2], parts[1::2])]


def full_divergence(p, q):
    return (np.exp(p) * (p - q)).sum(axis=1)


def listed(q):
    order = np.argsort(-q, axis=1)[:, :OURS_LISTED]
    values = np.take_along_axis(q, order, 1)
    return [list(zip(i.tolist(), v.tolist())) for i, v in zip(order, values)]


def main():
    llama_cpp = witnesses.llama_cpp_gguf(paths.SMOLLM2)
    tokenizer = witnesses.llama_cpp_model(paths.SMOLLM2, vocab_only=True)
    reference = witnesses.transformers_gguf(paths.SMOLLM2)
    random = np.random.Generator(np.random.PCG64(20240501))
    stored, witness = [], {}
    for name, text in sections():
        ids = tokenizer.tokenize(text.encode(), add_bos=False, special=True)
        if len(ids) < LENGTH:
            sys.exit(f"section {name} has {len(ids)} tokens, {LENGTH} are wanted")
        ids = ids[:LENGTH]
        p, q = reference(ids), llama_cpp(ids)
        sequence = score_golden.take(name, ids, p, TOP, TAIL, random)
        stored.append(sequence)
        kl, best = score_golden.divergence(sequence, listed(q))
        full = full_divergence(p, q)
        witness[name] = {
            "kl": round(float(full.mean()), 7),
            "kl_from_golden": round(float(kl.mean()), 7),
            "same_best": round(float(best.mean()), 4),
        }
        nll = -p[np.arange(LENGTH - 1), ids[1:]].mean()
        print(f"{name}: nll {nll:.4f}, llama.cpp {witness[name]}", flush=True)
    full = np.mean([w["kl"] for w in witness.values()])
    mine = np.mean([w["kl_from_golden"] for w in witness.values()])
    print(f"llama.cpp over all: kl {full:.4e}, from the golden {mine:.4e}, ratio {mine / full:.4f}")
    if abs(mine / full - 1) > 0.05:
        sys.exit("the golden does not stand for the whole distribution")
    meta = {
        "model": paths.SMOLLM2.name,
        "sha256": hashlib.sha256(paths.SMOLLM2.read_bytes()).hexdigest(),
        "reference": "transformers, float32, dequantised by gguf",
        "versions": witnesses.versions("transformers", "torch", "gguf", "numpy")
        | {"llama-cpp-python": __import__("llama_cpp").__version__},
        "sequences": [s.name for s in stored],
        "llama_cpp": witness,
    }
    score_golden.save(paths.GOLDENS / "smollm2_q4_1.npz", meta, stored)


if __name__ == "__main__":
    main()
