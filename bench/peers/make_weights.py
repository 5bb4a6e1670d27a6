"""Makes the weights of the comparison; runs in the environment of the Python tests.

    make_weights.py smollm2 SOURCE.gguf FILE.gguf   the same values as f32, out of a quantised file
    make_weights.py llama1b SOURCE.gguf FILE.gguf   random values, SOURCE's vocabulary
    make_weights.py hf SOURCE.gguf FOLDER           a Hugging Face folder in bf16 of a float file
    make_weights.py prompt SOURCE.gguf FILE         token ids of English words, to build prompts of

llama.cpp's own llama-quantize makes the quantised files of the float ones.
"""

import json
import pathlib
import random
import re
import sys

import gguf
import numpy

LLAMA_1B = {"block_count": 22, "embedding_length": 2048, "feed_forward_length": 5632,
            "attention.head_count": 32, "attention.head_count_kv": 4, "rope.dimension_count": 64,
            "context_length": 40960}
BF16 = gguf.GGMLQuantizationType.BF16
F32 = gguf.GGMLQuantizationType.F32


def to_bf16(values):
    """Rounds f32 to the nearest bf16, as 16-bit integers."""
    bits = numpy.ascontiguousarray(values, numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def metadata(reader):
    """The key-value pairs of a file, as name -> (value, type, element type)."""
    pairs = {}
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type",
                                                "general.quantization_version"):
            continue
        element = field.types[1] if len(field.types) > 1 else None
        pairs[name] = (field.contents(), field.types[0], element)
    return pairs


def writer_with(path, pairs):
    writer = gguf.GGUFWriter(path, "llama")
    for name, (value, kind, element) in pairs.items():
        writer.add_key_value(name, value, kind, element)
    return writer


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def values(tensor):
    """A tensor's values in f32, with its shape outermost first."""
    flat = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    return flat.reshape([int(n) for n in reversed(tensor.shape)]).astype(numpy.float32)


def make_smollm2(reader, path):
    pairs = metadata(reader)
    # Longer than it was trained for, so that growth can be measured; speed does not know.
    pairs["llama.context_length"] = (40960, *pairs["llama.context_length"][1:])
    writer = writer_with(path, pairs)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, values(tensor), raw_dtype=F32)
    finish(writer)


def make_llama1b(reader, path):
    pairs = metadata(reader)
    for name, value in LLAMA_1B.items():
        _, kind, element = pairs[f"llama.{name}"]
        pairs[f"llama.{name}"] = (value, kind, element)
    pairs["general.name"] = ("random llama of 1.17 B", *pairs["general.name"][1:])
    writer = writer_with(path, pairs)
    rng = numpy.random.default_rng(1)
    width, inner, vocabulary = 2048, 5632, len(pairs["tokenizer.ggml.tokens"][0])

    def matrix(name, rows, columns):
        data = to_bf16(rng.standard_normal((rows, columns), numpy.float32) * 0.02)
        writer.add_tensor(name, data.view(numpy.uint8), raw_dtype=BF16)

    def norm(name):
        writer.add_tensor(name, numpy.ones(width, numpy.float32))

    matrix("token_embd.weight", vocabulary, width)
    matrix("output.weight", vocabulary, width)
    norm("output_norm.weight")
    for layer in range(LLAMA_1B["block_count"]):
        prefix = f"blk.{layer}."
        norm(prefix + "attn_norm.weight")
        norm(prefix + "ffn_norm.weight")
        matrix(prefix + "attn_q.weight", width, width)
        matrix(prefix + "attn_k.weight", 256, width)
        matrix(prefix + "attn_v.weight", 256, width)
        matrix(prefix + "attn_output.weight", width, width)
        matrix(prefix + "ffn_gate.weight", inner, width)
        matrix(prefix + "ffn_up.weight", inner, width)
        matrix(prefix + "ffn_down.weight", width, inner)
    finish(writer)


HF_NAMES = {"token_embd": "model.embed_tokens", "output": "lm_head", "output_norm": "model.norm",
            "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
            "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
            "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
            "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def hf_name(name):
    if match := re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", name):
        return f"model.layers.{match[1]}.{HF_NAMES[match[2]]}.weight"
    return HF_NAMES[name.removesuffix(".weight")] + ".weight"


def hf_order(matrix, heads):
    """Rows of q and k from GGUF's order, pairs side by side, to halves apart."""
    rows, columns = matrix.shape
    return matrix.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(
        rows, columns)


def write_safetensors(path, tensors):
    """`tensors`: name -> 16-bit integers that are bf16 values."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, data in tensors.items():
        header[name] = {"dtype": "BF16", "shape": list(data.shape),
                        "data_offsets": [offset, offset + data.nbytes]}
        offset += data.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for data in tensors.values():
            file.write(numpy.ascontiguousarray(data).tobytes())


def write_tokenizer(path, pairs):
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    tokens = pairs["tokenizer.ggml.tokens"][0]
    merges = [tuple(m.split(" ")) for m in pairs["tokenizer.ggml.merges"][0]]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True),
         pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    kinds = pairs["tokenizer.ggml.token_type"][0]
    tokenizer.add_special_tokens(
        [AddedToken(t, special=True) for t, kind in zip(tokens, kinds) if kind == 3])
    tokenizer.save(str(path))


def make_hf(reader, folder):
    pairs = metadata(reader)
    get = lambda name: pairs[f"llama.{name}"][0]
    heads, kv_heads = get("attention.head_count"), get("attention.head_count_kv")
    tensors = {}
    for tensor in reader.tensors:
        matrix = values(tensor)
        if tensor.name.endswith("attn_q.weight"):
            matrix = hf_order(matrix, heads)
        elif tensor.name.endswith("attn_k.weight"):
            matrix = hf_order(matrix, kv_heads)
        tensors[hf_name(tensor.name)] = to_bf16(matrix)
    write_safetensors(folder / "model.safetensors", tensors)
    end = pairs["tokenizer.ggml.eos_token_id"][0]
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16",
        "hidden_size": get("embedding_length"), "intermediate_size": get("feed_forward_length"),
        "num_hidden_layers": get("block_count"), "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "head_dim": get("embedding_length") // heads,
        "vocab_size": len(pairs["tokenizer.ggml.tokens"][0]), "hidden_act": "silu",
        "rms_norm_eps": float(get("attention.layer_norm_rms_epsilon")),
        "rope_theta": float(get("rope.freq_base")),
        "max_position_embeddings": get("context_length"), "bos_token_id": 1, "eos_token_id": end,
        "tie_word_embeddings": "lm_head.weight" not in tensors, "attention_bias": False}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"}))
    write_tokenizer(folder / "tokenizer.json", pairs)


def make_prompt(reader, path):
    tokens = metadata(reader)["tokenizer.ggml.tokens"][0]
    words = [i for i, token in enumerate(tokens) if re.fullmatch("\u0120[a-z]{3,8}", token)]
    path.write_text(json.dumps(random.Random(1).choices(words[:4000], k=8192)))


def main():
    what, source, target = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    reader = gguf.GGUFReader(source)
    {"smollm2": make_smollm2, "llama1b": make_llama1b, "hf": make_hf,
     "prompt": make_prompt}[what](reader, target)


if __name__ == "__main__":
    main()
