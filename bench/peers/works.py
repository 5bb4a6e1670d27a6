"""What is measured: models, works and their cells."""

MODELS = {f"{name}-{kind}": (name, kind) for name in ("smollm2", "llama1b")
          for kind in ("q4_0", "q8_0", "bf16")}
ROWS = (1, 4, 8, 16, 32)
PROMPTS = (512, 2048)
GENERATE = 128
VOCABULARY = 49152

# A work is what one process of a peer does in one go; its cells are the figures that come out.
WORKS = {
    "prompt": "read prompts of 512 and 2,048 tokens",
    **{f"decode-{context}-{rows}": f"decode {rows} rows at {context} tokens of context"
       for context in (128, 2048) for rows in ROWS},
    "serve-8": "8 streaming clients",
    "serve-32": "32 streaming clients",
    "join": "a prompt of 2,050 tokens joins 7 streams",
    "start": "start to first token",
}
GROUPS = {"decode-128": [w for w in WORKS if w.startswith("decode-128-")],
          "decode-2048": [w for w in WORKS if w.startswith("decode-2048-")],
          "all": list(WORKS)}


def decode_cell(rows, context):
    return f"decode {rows} @ {context}"


CELLS = [f"prompt {n}" for n in PROMPTS]
CELLS += [decode_cell(rows, context) for context in (128, 2048) for rows in ROWS]
for _clients in (8, 32):
    CELLS += [f"serve {_clients}: {name}" for name in
              ("tokens/s", "TTFT p50 ms", "ITL p50 ms", "ITL p99 ms", "peak memory MiB")]
CELLS += ["join: longest gap ms", "join: TTFT ms", "start to first token s"]


def bytes_a_token(model, file_bytes):
    """Bytes of weights that decoding a token reads, of a GGUF file of this size: all but the
    embeddings, where the head is another matrix."""
    name, kind = MODELS[model]
    if name == "smollm2":
        return file_bytes
    return file_bytes - VOCABULARY * 2048 * {"q4_0": 18 / 32, "q8_0": 34 / 32, "bf16": 2}[kind]


def smaller_is_better(cell):
    return cell.endswith((" ms", " s", " MiB"))


def expand(names):
    """Works by name, groups opened."""
    works = []
    for name in names:
        for work in GROUPS.get(name, [name]):
            if work not in WORKS:
                raise SystemExit(f"bench-peers: no work {work}; there are "
                                 f"{', '.join([*GROUPS, *WORKS])}")
            works.append(work)
    return works
