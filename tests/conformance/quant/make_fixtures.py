"""Writes the fixtures of the weight formats: random and edge blocks, and what the packages `gguf` and
`mlx` expand them to.

    pip install -r tools/reference/requirements.txt
    python make_fixtures.py

One file a format, little endian: u32 number of blocks, u32 elements a block, three u32 bytes a block
in each plane; the blocks, plane by plane; the f32 values. The elements of the last blocks come from scales that are NaN, infinite,
denormal, -0 and the largest. rounding.bin: u32 count; f32 values; what they round to in f16 (numpy) and in
bf16 (gguf).
"""

import pathlib
import struct

import gguf
import mlx.core as mx
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

# MLX's affine formats: every width and group, and for the middle group every type of constants.
MLX = [(bits, group, "BF16") for bits in (2, 3, 4, 5, 6, 8) for group in (32, 64, 128)]
MLX += [(bits, 64, constants) for bits in (2, 3, 4, 5, 6, 8) for constants in ("F16", "F32")]


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


def write(path, elements, planes, values):
    """planes: uint8 [blocks, bytes of a block]."""
    sizes = [plane.shape[1] for plane in planes] + [0] * (3 - len(planes))
    with open(path, "wb") as out:
        out.write(struct.pack("<5I", len(planes[0]), elements, *sizes))
        for plane in planes:
            out.write(plane.tobytes())
        out.write(values.astype("<f4").tobytes())


def edge_constants(constants, field, random):
    """Scales or biases as raw bytes [blocks, size]: ordinary ones, then the edges of the type."""
    ordinary = random.normal(0, 0.05, PLAIN_BLOCKS).astype("<f4")
    if constants == "F16":
        bits = np.concatenate([ordinary.astype("<f2").view("<u2"), np.roll(EDGES, -5 * field)])
        return bits.astype("<u2").view(np.uint8).reshape(-1, 2)
    # bfloat16 is the upper half of f32, so its edges are too.
    edges = [0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F81]
    bits = np.concatenate([ordinary.view("<u4"), np.roll(edges, -5 * field) << 16])
    if constants == "F32":
        return bits.astype("<u4").view(np.uint8).reshape(-1, 4)
    return (bits >> 16).astype("<u2").view(np.uint8).reshape(-1, 2)


def write_mlx(folder):
    mx.set_default_device(mx.cpu)
    types = {"BF16": mx.bfloat16, "F16": mx.float16, "F32": mx.float32}
    for bits, group, constants in MLX:
        random = np.random.default_rng([bits, group, len(constants)])
        size = group * bits // 8
        codes = random.integers(0, 256, (PLAIN_BLOCKS + len(EDGES), size), dtype=np.uint8)
        fields = [edge_constants(constants, field, random) for field in (0, 1)]
        scales, biases = (
            mx.view(mx.array(field), types[constants]).astype(mx.float32) for field in fields
        )
        values = mx.dequantize(mx.array(codes.view("<u4")), scales, biases, group, bits)
        write(folder / f"MLX_{bits}_G{group}_{constants}.bin", group, [codes, *fields], np.array(values))


def main():
    here = pathlib.Path(__file__).parent / "fixtures"
    here.mkdir(exist_ok=True)
    write_mlx(here)
    random = np.random.default_rng(20)
    for name in SCALES:
        kind = GGMLQuantizationType[name]
        elements, _ = GGML_QUANT_SIZES[kind]
        blocks = blocks_of(name, random)
        with np.errstate(all="ignore"):
            values = gguf.quants.dequantize(blocks, kind).astype("<f4")
        write(here / f"{name}.bin", elements, [blocks], values)
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
