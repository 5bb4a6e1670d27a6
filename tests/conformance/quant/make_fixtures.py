"""Writes the fixtures of the weight formats: random and edge blocks, and what the `gguf` package
expands them to.

    pip install gguf==0.19.0 numpy==2.4.6
    python make_fixtures.py

One file a format, little endian: u32 number of blocks, u32 elements a block, u32 bytes a block; the
blocks; the f32 values. The elements of the last blocks come from scales that are NaN, infinite,
denormal, -0 and the largest. rounding.bin: u32 count; f32 values; what they round to in f16 (numpy) and in
bf16 (gguf).
"""

import pathlib
import struct

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

# Where the f16 fields of a block stand.
SCALES = {
    "F16": [0],
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "BF16": [],
    "F32": [],
}
# zero, -0, smallest and largest denormal, smallest normal, largest, infinities, NaNs
EDGES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7C01]
PLAIN_BLOCKS = 12


def blocks_of(name, random):
    size = GGML_QUANT_SIZES[GGMLQuantizationType[name]][1]
    count = PLAIN_BLOCKS + len(EDGES)
    if name == "F16":
        return np.arange(0, 65536, 5, dtype="<u2").view(np.uint8).reshape(-1, size)
    if name == "BF16":
        return np.arange(0, 65536, 7, dtype="<u2").view(np.uint8).reshape(-1, size)
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    for i in range(count):
        for field, at in enumerate(SCALES[name]):
            ordinary = np.float16(random.normal(0, 0.05)).view(np.uint16)
            edge = EDGES[(i - PLAIN_BLOCKS + 5 * field) % len(EDGES)]
            value = ordinary if i < PLAIN_BLOCKS else edge
            blocks[i, at : at + 2] = np.frombuffer(struct.pack("<H", int(value)), dtype=np.uint8)
    return blocks


def main():
    here = pathlib.Path(__file__).parent / "fixtures"
    here.mkdir(exist_ok=True)
    random = np.random.default_rng(20)
    for name in SCALES:
        kind = GGMLQuantizationType[name]
        elements, size = GGML_QUANT_SIZES[kind]
        blocks = blocks_of(name, random)
        with np.errstate(all="ignore"):
            values = gguf.quants.dequantize(blocks, kind).astype("<f4")
        with open(here / f"{name}.bin", "wb") as out:
            out.write(struct.pack("<III", len(blocks), elements, size))
            out.write(blocks.tobytes())
            out.write(values.tobytes())
    # Every exponent, with mantissas that lie on and beside the ties of both types.
    exponents = np.arange(0, 256, dtype=np.uint32)
    ends = [0, 1, 0x1000, 0xFFF, 0x1001, 0x3000, 0x7FE000, 0x7FF000, 0x8000, 0x7FFF, 0x8001, 0x18000]
    mantissas = np.array(ends + list(random.integers(0, 1 << 23, 20)), dtype=np.uint32)
    bits = ((exponents[:, None] << 23) | mantissas[None, :]).ravel()
    f32 = np.concatenate([bits, bits | np.uint32(1 << 31)]).astype("<u4").view("<f4")
    with np.errstate(all="ignore"):
        f16 = f32.astype("<f2")
    bf16 = gguf.quants.quantize(f32, GGMLQuantizationType.BF16)
    with open(here / "rounding.bin", "wb") as out:
        out.write(struct.pack("<I", len(f32)) + f32.tobytes() + f16.tobytes() + bf16.tobytes())


if __name__ == "__main__":
    main()
