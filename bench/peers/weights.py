"""The same weights for every peer, made once and kept in the cache folder."""

import json
import os
import shutil

from common import CACHE, HERE, ROOT, output_of, say
from works import MODELS

# A change of how weights are made takes a new folder.
FOLDER = CACHE / "weights-1"


class Weights:
    """`quantize` is llama.cpp's llama-quantize."""

    def __init__(self, quantize):
        self.quantize = quantize

    def gguf(self, model):
        name, kind = MODELS[model]
        if (name, kind) == ("llama1b", "bf16"):
            return self.source(name)
        return self.quantized(name, kind)

    def f16(self, name):
        return self.quantized(name, "f16")

    def quantized(self, name, kind):
        def make(path):
            output_of([self.quantize, self.source(name), path, kind.upper()])
        return once(FOLDER / name / f"{kind}.gguf", make)

    def source(self, name):
        """The float file that every other form of a model comes from."""
        kind = {"smollm2": "f32", "llama1b": "bf16"}[name]
        return once(FOLDER / name / f"{kind}.gguf", lambda path: made(name, path))

    def hf(self, name):
        """A Hugging Face folder in bf16."""
        def make(path):
            path.mkdir()
            script("hf", self.source(name), path)
        return once(FOLDER / name / "hf", make)

    def words(self):
        """Token ids of English words, for prompts; both models have one vocabulary."""
        return json.loads(once(FOLDER / "words.json", lambda path: made("prompt", path)).read_text())


def once(path, make):
    """The path, which `make` fills under another name when it is not there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"partial-{path.name}")
        if partial.is_dir():
            shutil.rmtree(partial)
        say(f"making {path.relative_to(FOLDER)}")
        make(partial)
        os.replace(partial, path)
    return path


def script(what, source, target):
    python = output_of([ROOT / "tools/python_env.sh"], env=dict(os.environ)).strip()
    output_of([python, HERE / "make_weights.py", what, source, target])


def made(what, target):
    smollm2 = output_of([ROOT / "tools/fetch_model.sh"], env=dict(os.environ)).strip()
    script(what, smollm2, target)
