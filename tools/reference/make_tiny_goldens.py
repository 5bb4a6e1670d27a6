"""Writes tests/conformance/goldens/tiny-*.json for the tiny checkpoints.

Folders: transformers and mlx-lm, which must agree with each other far within the test's tolerance.
Folders in MLX's formats: mlx-lm's own quantised layers, and transformers on the tensors as mlx
dequantises them. GGUF files: transformers on the tensors as the gguf package dequantises them.

Names as arguments: those alone.
"""

import json
import sys

import numpy as np

import paths
import tiny_models
import witnesses

TOP, RANDOM = 32, 8
UNIT = 1e-5
AGREE = 2e-4


def golden(tiny, runs, packages):
    sequences = []
    for number, length in enumerate(tiny.lengths):
        random = tiny_models.rng(tiny.name, f"tokens {number}")
        ids = random.integers(3, tiny.vocab, length).tolist()
        results = {name: run(ids) for name, run in runs.items()}
        first = results["transformers"]
        for name, result in results.items():
            worst = np.abs(result - first).max()
            print(f"{tiny.name} [{length}] std {first.std(axis=1).mean():.2f} "
                  f"{name}: differs from transformers by at most {worst:.1e}")
            if worst > AGREE:
                sys.exit(f"{name} and transformers disagree on {tiny.name}")
        order = np.argsort(-first, axis=1, kind="stable")
        positions = []
        for i in range(length):
            rest = random.choice(order[i][TOP:], RANDOM, replace=False)
            tokens = np.concatenate([order[i][:TOP], rest])
            row = {"ids": tokens.tolist()}
            for name, result in results.items():
                row[name] = np.round(result[i][tokens] / UNIT).astype(int).tolist()
            positions.append(row)
        sequences.append({"ids": ids, "positions": positions})
    value = {
        "model": tiny.name,
        "vocabulary": tiny.vocab,
        "versions": witnesses.versions(*packages),
        "logprob_unit": UNIT,
        "references": list(runs),
        "sequences": sequences,
    }
    text = json.dumps(value, separators=(",", ":"))
    (paths.GOLDENS / f"{tiny.name}.json").write_text(text.replace('{"ids"', '\n{"ids"') + "\n")


def main():
    wanted = lambda models: [m for m in models if not sys.argv[1:] or m.name in sys.argv[1:]]
    for tiny in wanted(tiny_models.FOLDERS):
        folder = paths.CHECKPOINTS / tiny.name
        runs = {
            "transformers": witnesses.transformers_folder(folder),
            "mlx_lm": witnesses.mlx_lm_folder(folder),
        }
        golden(tiny, runs, ["transformers", "torch", "mlx", "mlx-lm"])
    for tiny in wanted(tiny_models.MLX):
        folder = paths.CHECKPOINTS / tiny.name
        mlx_lm, tensors = witnesses.mlx_lm_quantized_folder(folder)
        config = json.loads((folder / "config.json").read_text())
        runs = {"transformers": witnesses.transformers_tensors(config, tensors), "mlx_lm": mlx_lm}
        golden(tiny, runs, ["transformers", "torch", "mlx", "mlx-lm"])
    for tiny in wanted(tiny_models.GGUFS):
        path = paths.CHECKPOINTS / f"{tiny.name}.gguf"
        golden(tiny, {"transformers": witnesses.transformers_gguf(path)},
               ["transformers", "torch", "gguf"])


if __name__ == "__main__":
    main()
