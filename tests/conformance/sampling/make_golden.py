#!/usr/bin/env python3
"""Writes golden.json: what transformers' logits processors make of some rows of logits, for
src/sampling/reference_test.cc. Needs the packages of tools/reference/requirements.txt.

Run from anywhere: python tests/conformance/sampling/make_golden.py
"""

import json
import pathlib

import torch
import transformers
from transformers.generation import logits_process as lp

VOCABULARY = 300
SETTINGS = [
    {"top_k": 1}, {"top_k": 5}, {"top_k": 300}, {"top_k": 50},
    {"top_p": 0.05}, {"top_p": 0.5}, {"top_p": 0.9}, {"top_p": 0.99},
    {"min_p": 0.02}, {"min_p": 0.1}, {"min_p": 0.5},
    {"top_k": 20, "top_p": 0.7}, {"top_p": 0.8, "min_p": 0.05},
    {"top_k": 40, "top_p": 0.95, "min_p": 0.03},
]


def kept(logits, setting):
    """The ids left by top_k, then top_p, then min_p, ascending."""
    scores = logits[None, :].clone()
    if "top_k" in setting:
        scores = lp.TopKLogitsWarper(setting["top_k"])(None, scores)
    if "top_p" in setting:
        scores = lp.TopPLogitsWarper(setting["top_p"])(None, scores)
    if "min_p" in setting:
        scores = lp.MinPLogitsWarper(setting["min_p"])(None, scores)
    return torch.nonzero(torch.isfinite(scores[0])).flatten().tolist()


def main():
    torch.manual_seed(3)
    rows = []
    for spread in (0.5, 1.5, 4.0):
        logits = torch.randn(VOCABULARY) * spread
        seen = torch.randint(0, VOCABULARY, (1, 40))
        penalised = {
            str(penalty): lp.RepetitionPenaltyLogitsProcessor(penalty)(seen, logits[None, :].clone())[0].tolist()
            for penalty in (0.8, 1.3)
        }
        rows.append({
            "logits": logits.tolist(),
            "seen": seen[0].tolist(),
            "repetition": penalised,
            "kept": [{"setting": s, "ids": kept(logits, s)} for s in SETTINGS],
        })
    out = {"transformers": transformers.__version__, "torch": torch.__version__, "rows": rows}
    path = pathlib.Path(__file__).with_name("golden.json")
    path.write_text(json.dumps(out) + "\n")
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
