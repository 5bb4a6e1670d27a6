"""The machine's limits, as bench/kernels measures them."""

import re

from common import ROOT, output_of

WIDEST_FIRST = ("avx512", "avxvnni", "avx2")


def bandwidth_name(threads):
    return f"read GB/s, {threads} thread{'s' if threads > 1 else ''}"


def measure():
    # A format of no name: the limits alone are printed.
    text = output_of([ROOT / "build/bench/kernels/gemm_bench", "", "none"])
    one, two = re.search(r"([\d.]+) GB/s with one, ([\d.]+) GB/s with two", text).groups()
    limits = {bandwidth_name(1): float(one), bandwidth_name(2): float(two)}
    for isa in WIDEST_FIRST:
        if match := re.search(rf"^{isa}: (\d+) Gmac/s in 8 bits, (\d+) in 16, (\d+) in f32$", text,
                              re.MULTILINE):
            limits |= {f"{isa} int8 Gmac/s, 1 thread": float(match[1]),
                       f"{isa} f32 Gmac/s, 1 thread": float(match[3])}
            break
    return limits
