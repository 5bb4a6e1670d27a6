#!/usr/bin/env python3
"""Writes goldens/tokenizers.json: token ids and texts as the Python `tokenizers` library gives them.

Needs tokenizers and gguf as pinned in tests/requirements.txt, and the SmolLM2 file of
tools/fetch_model.sh. The small tokenizers are trained here and kept in the golden file whole.
"""

import importlib.metadata
import json
import os
import pathlib

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

from corpus import TEXTS

HERE = pathlib.Path(__file__).resolve().parent
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
TRAINING = [text for text in TEXTS if "<" not in text] * 3


def smollm2():
    """SmolLM2's published tokenizer: single digits, then byte-level BPE with GPT-2's pattern."""
    cache = os.environ.get("LOCKSTEP_CACHE") or os.path.expanduser("~/.cache/lockstep")
    path = os.environ.get("LOCKSTEP_MODEL") or f"{cache}/models/SmolLM2-135M-Instruct.Q4_1.gguf"
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    control = [t for t, kind in zip(tokens, types) if kind == gguf.TokenType.CONTROL]
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in control])
    return tokenizer


def byte_level(pattern=None):
    """Byte-level BPE with a BOS from the post-processor, an added token and GPT-2's or Llama 3's pattern."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=pattern is not None))
    if pattern is None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(pattern), "isolated"),
             pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(TRAINING, trainer)
    tokenizer.add_tokens([AddedToken("[INST]", normalized=False, special=False)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)])
    return tokenizer


BYTES = [f"<0x{b:02X}>" for b in range(256)]


def sentence_piece_bpe():
    """SentencePiece-style BPE as in Llama 2's file: a prefix space, byte fallback, no pre-tokenizer."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    words = [text for text in TRAINING if text.isascii() and len(text) < 90]
    trainer = trainers.BpeTrainer(vocab_size=480, special_tokens=["<unk>", "<s>", "</s>"] + BYTES,
                                  max_token_length=8, show_progress=False)
    tokenizer.train_from_iterator([w for text in words for w in text.split(" ")], trainer)
    # The byte tokens are of the vocabulary, not added to it.
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = data["added_tokens"][:3]
    return Tokenizer.from_str(json.dumps(data))


def unigram():
    """Unigram with Metaspace before the first word only, and byte fallback."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
    trainer = trainers.UnigramTrainer(vocab_size=300, unk_token="<unk>", show_progress=False,
                                      special_tokens=["<unk>", "<s>", "</s>"])
    tokenizer.train_from_iterator([text for text in TRAINING if text.isascii()], trainer)
    data = json.loads(tokenizer.to_str())
    data["model"]["vocab"] += [[token, -30.0] for token in BYTES]
    data["model"]["byte_fallback"] = True
    data["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "ByteFallback"}, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never",
                                   "split": False}]}
    return Tokenizer.from_str(json.dumps(data))


def rows(tokenizer):
    plain = Tokenizer.from_str(tokenizer.to_str())
    plain.encode_special_tokens = True
    result = []
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        with_special = tokenizer.encode(text, add_special_tokens=True).ids
        row = {"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)}
        if with_special != ids:
            row["with_special"] = with_special
        if (plain_ids := plain.encode(text, add_special_tokens=False).ids) != ids:
            row["plain"] = plain_ids
        result.append(row)
    return result


def main():
    golden = {"versions": {name: importlib.metadata.version(name) for name in ("tokenizers", "gguf")},
              "cases": [{"name": "smollm2", "rows": rows(smollm2())}]}
    for name, tokenizer in [("byte_level_gpt2", byte_level()), ("byte_level_llama3", byte_level(LLAMA3)),
                            ("sentence_piece_bpe", sentence_piece_bpe()), ("unigram", unigram())]:
        golden["cases"].append({"name": name, "tokenizer": json.loads(tokenizer.to_str()),
                                "rows": rows(tokenizer)})
    path = HERE / "goldens" / "tokenizers.json"
    path.write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n")
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
