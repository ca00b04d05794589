#!/usr/bin/env python3
"""Writes the expected decodes of tests/golden/quant: for every weight format, one JSON file with
random and extreme blocks and what PyPI's `gguf` package makes of them.

Run by hand after adding a format to src/quant/formats.def: `pip install gguf`, then
tools/make_quant_fixture.py. The files are committed; the build never runs this.

Each file: {"format", "block_elements", "block_bytes", "blocks": [hex of one block, ...], "floats":
[hex of the float32 bit patterns of that block, 8 digits each, ...]}. Zero times infinity gives a NaN
whose sign is the machine's; tests compare NaNs as NaNs.
"""
import json
import pathlib
import re

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINE = re.compile(r'HEADRACE_FORMAT\((\w+), "(\w+)", (\d+), (\d+), (\d+)\)')
# Byte offsets of the binary16 fields inside a block.
HALVES = {
    "F16": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "IQ4_XS": [0],
}
# One, an odd ordinary number, the least subnormal, the largest subnormal, the largest, minus one
# third, minus zero, infinity.
EXTREMES = [0x3C00, 0x1B2D, 0x0001, 0x03FF, 0x7BFF, 0xB555, 0x8000, 0x7C00]


def make_blocks(name, block_bytes, rng):
    halves = HALVES.get(name, [])
    blocks = rng.integers(0, 256, (12 if block_bytes < 100 else 10, block_bytes), dtype=np.uint8)
    if name == "MXFP4":
        blocks[:8, 0] = [0, 1, 2, 127, 128, 200, 254, 255]
    if name == "F32":
        blocks = np.array([0.0, -0.0, 1.0, -1e-45, 3.4e38, np.inf, -np.inf, 0.1, 7, 1e-38, -3, 2],
                          dtype=np.float32).view(np.uint8).reshape(-1, 4)
    for i, block in enumerate(blocks):
        for j, offset in enumerate(halves):
            value = EXTREMES[(i + 3 * j) % len(EXTREMES)]
            if i >= len(EXTREMES):  # an ordinary model's scale
                value = int(np.float16(rng.normal(0, 0.02)).view(np.uint16))
            block[offset:offset + 2] = np.frombuffer(value.to_bytes(2, "little"), np.uint8)
    return blocks


def main():
    out = ROOT / "tests" / "golden" / "quant"
    out.mkdir(parents=True, exist_ok=True)
    for _, name, number, elements, size in LINE.findall(
            (ROOT / "src" / "quant" / "formats.def").read_text()):
        # A stream a format, so that adding one leaves the other files as they are.
        blocks = make_blocks(name, int(size), np.random.default_rng(int(number)))
        with np.errstate(all="ignore"):
            floats = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType(int(number)))
        bits = np.ascontiguousarray(floats, dtype="<f4").view("<u4").reshape(len(blocks), -1)
        assert bits.shape[1] == int(elements)
        (out / f"{name.lower()}.json").write_text(json.dumps({
            "format": name, "block_elements": int(elements), "block_bytes": int(size),
            "blocks": [block.tobytes().hex() for block in blocks],
            "floats": ["".join(f"{value:08x}" for value in row) for row in bits],
        }, indent=0) + "\n")
        print(f"{name}: {len(blocks)} blocks")


if __name__ == "__main__":
    main()
