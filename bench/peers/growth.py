#!/usr/bin/env python3
"""How lockstep's speed grows with rows, context and threads: measures it, and draws the plots.

    growth.py measure FILE.json [--models ...] [--what rows context threads] [--lockstep BINARY]
    growth.py draw FILE.json... [--to docs]

`draw` writes one SVG an axis; a later file's points replace an earlier one's.
"""

import argparse
import json
import os
import pathlib

import svg
from common import ROOT, output_of, say
from peer_llama_cpp import LlamaCpp
from weights import Weights
from works import MODELS

ROWS = (1, 2, 4, 8, 16, 32, 64)
CONTEXTS = (128, 512, 2048, 8192, 16384, 32768)
GENERATE = 32
TITLES = {"rows": ("Decoding at 128 tokens of context", "rows that decode together"),
          "context": ("Decoding one row", "tokens of context"),
          "threads": ("Threads", "threads")}


def thread_counts(most):
    return sorted({min(2 ** e, most) for e in range(most.bit_length() + 1)})


class Measurement:
    def __init__(self, binary, file, threads):
        self.binary, self.file, self.threads = binary, file, threads

    def bench(self, threads, rows=1, context=128, prompt=512):
        """(tokens/s of the prompt, tokens/s of decoding)"""
        results = json.loads(output_of(
            [self.binary, "bench", self.file, "--threads", threads, "--json", "--repeat", 1,
             "--prompt", prompt, "--rows", rows, "--context", context, "--generate", GENERATE]))
        return [result["tokens_per_s"] for result in results]

    def rows(self):
        return {"decode": [(n, self.bench(self.threads, rows=n)[1]) for n in ROWS]}

    def context(self):
        return {"decode": [(n, self.bench(self.threads, context=n)[1]) for n in CONTEXTS]}

    def threads_(self):
        counts = thread_counts(self.threads)
        one = [(n, self.bench(n)) for n in counts]
        eight = [(n, self.bench(n, rows=8)[1]) for n in counts]
        return {"prompt 512": [(n, both[0]) for n, both in one],
                "decode 1": [(n, both[1]) for n, both in one], "decode 8": eight}


def measure(settings):
    builder = LlamaCpp(settings)
    builder.prepare()
    weights = Weights(builder.bin / "llama-quantize")
    found = {}
    for model in settings.models:
        measurement = Measurement(settings.lockstep, weights.gguf(model), settings.threads)
        for what in settings.what:
            say(f"{model}: {what}")
            lines = getattr(measurement, "threads_" if what == "threads" else what)()
            for name, points in lines.items():
                found.setdefault(what, {})[f"{model}, {name}"] = points
            settings.files[0].write_text(json.dumps(found, indent=1))


def draw(settings):
    found = {}
    for file in settings.files:
        for what, lines in json.loads(file.read_text()).items():
            found.setdefault(what, {}).update(lines)
    for what, lines in found.items():
        title, x_label = TITLES[what]
        series = {name.removesuffix(", decode"): points for name, points in lines.items()}
        path = settings.to / f"performance_{what}.svg"
        path.write_text(svg.chart(title, x_label, "tokens/s", series))
        print(path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("measure", "draw"))
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--models", nargs="+", choices=MODELS,
                        default=[m for m in MODELS if m.startswith("smollm2")])
    parser.add_argument("--what", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--lockstep", type=pathlib.Path, default=ROOT / "build/lockstep")
    parser.add_argument("--to", type=pathlib.Path, default=ROOT / "docs")
    settings = parser.parse_args()
    settings.log_folder = None
    {"measure": measure, "draw": draw}[settings.step](settings)


if __name__ == "__main__":
    main()
