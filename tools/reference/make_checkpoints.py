"""Writes tests/conformance/checkpoints/: tiny random models as folders, as GGUF files and as mlx-lm
converts the folders.

Deterministic: the same packages (requirements.txt) give the same bytes. Names as arguments: those
alone.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

import families
import gguf_model
import tiny_models
from tiny_configs import MAX_POSITIONS, config_of

ROOT = Path(__file__).resolve().parents[2] / "tests" / "conformance"
OUT = ROOT / "checkpoints"
SPECIALS = ["<|begin|>", "<|end|>", "<|pad|>"]
FILE_TYPES = {"F32": "ALL_F32", "Q4_K": "MOSTLY_Q4_K_M", "Q5_K": "MOSTLY_Q5_K_M"}


def train_tokenizer(vocab):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[AddedToken(s, special=True, normalized=False) for s in SPECIALS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([(ROOT / "data" / "score_text.txt").read_text()], trainer)
    if tokenizer.get_vocab_size() != vocab:
        raise ValueError(f"the tokenizer has {tokenizer.get_vocab_size()} tokens, not {vocab}")
    return tokenizer


def bf16_bits(array):
    """Nearest bfloat16, ties to even, as uint16 bits. Finite input only."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def save_safetensors(path, tensors, dtype):
    if dtype == "BF16":
        # numpy has no bfloat16: write uint16 and name the type in the header, padded to its size.
        save_file({k: bf16_bits(v) for k, v in tensors.items()}, path, {"format": "pt"})
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        header = data[8 : 8 + size].replace(b'"U16"', b'"BF16"').rstrip(b" ")
        header += b" " * (-len(header) % 8)
        path.write_bytes(len(header).to_bytes(8, "little") + header + data[8 + size :])
        return
    cast = {"F32": np.float32, "F16": np.float16}[dtype]
    save_file({k: v.astype(cast) for k, v in tensors.items()}, path, {"format": "pt"})


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_folder(tiny, out=OUT):
    folder = out / tiny.name
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config_of(tiny))
    write_json(folder / "generation_config.json", {"bos_token_id": 0, "eos_token_id": 1})
    tokenizer = train_tokenizer(tiny.vocab)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=False))
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": SPECIALS[0],
            "eos_token": SPECIALS[1],
            "pad_token": SPECIALS[2],
            "add_bos_token": False,
            "model_max_length": MAX_POSITIONS,
            "clean_up_tokenization_spaces": False,
        },
    )
    tensors = tiny_models.weights(tiny)
    if tiny.shards == 1:
        save_safetensors(folder / "model.safetensors", tensors, tiny.dtype)
        return
    names, shard_of = list(tensors), {}
    for i in range(tiny.shards):
        file = f"model-{i + 1:05d}-of-{tiny.shards:05d}.safetensors"
        part = names[i * len(names) // tiny.shards : (i + 1) * len(names) // tiny.shards]
        save_safetensors(folder / file, {n: tensors[n] for n in part}, tiny.dtype)
        shard_of |= {n: file for n in part}
    total = sum(t.nbytes for t in tensors.values())
    write_json(
        folder / "model.safetensors.index.json",
        {"metadata": {"total_size": total}, "weight_map": dict(sorted(shard_of.items()))},
    )


def write_mlx(tiny):
    """The folder as `mlx_lm.convert` writes it."""
    import mlx.core as mx
    import mlx_lm

    mx.set_default_device(mx.cpu)

    def scheme(path, module):
        for ending, wanted in tiny.modules.items():
            if path.endswith(ending):
                return dict(zip(("bits", "group_size"), wanted)) if wanted else False
        return True

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        write_folder(tiny, folder)
        bits, group = tiny.quantized
        mlx_lm.convert(
            str(folder / tiny.name), str(folder / "mlx"), quantize=True, q_bits=bits,
            q_group_size=group, quant_predicate=scheme if tiny.modules else None,
        )
        target = OUT / tiny.name
        target.mkdir(parents=True, exist_ok=True)
        for file in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            shutil.copyfile(folder / "mlx" / file, target / file)


def random_q4_k(name, rows, cols, std, fifth_bits=False):
    """Random Q4_K or Q5_K blocks (the package only decodes them), values about 0 and of about the
    given std."""
    random = tiny_models.rng(name, "q5_k" if fifth_bits else "q4_k")
    blocks = rows * cols // 256
    scale = random.integers(32, 64, (blocks, 8))
    minimum = scale  # with dmin = d * mean code, every group is about 0
    packed = np.zeros((blocks, 12), np.uint8)
    packed[:, 0:4] = scale[:, :4] | (scale[:, 4:] >> 4) << 6
    packed[:, 4:8] = minimum[:, :4] | (minimum[:, 4:] >> 4) << 6
    packed[:, 8:12] = (scale[:, 4:] & 15) | (minimum[:, 4:] & 15) << 4
    codes = 32 if fifth_bits else 16
    # Codes are uniform (std codes / sqrt 12), scales have an rms of about 48.
    d = random.uniform(0.8, 1.2, (blocks, 1)) * std / (codes / np.sqrt(12) * 48)
    constants = np.concatenate([d, d * (codes - 1) / 2], axis=1).astype(np.float16)
    body = random.integers(0, 256, (blocks, 160 if fifth_bits else 128), dtype=np.uint8)
    raw = np.concatenate([constants.view(np.uint8), packed, body], axis=1)
    return raw.reshape(rows, -1)


def random_q5_k(name, rows, cols, std):
    return random_q4_k(name, rows, cols, std, fifth_bits=True)


def random_q6_k(name, rows, cols, std):
    """Random Q6_K blocks (the package only decodes them) with values of about the given std."""
    random = tiny_models.rng(name, "q6_k")
    blocks = rows * cols // 256
    raw = np.empty((blocks, 210), np.uint8)  # ql[128] qh[64] scales[16] d
    raw[:, :192] = random.integers(0, 256, (blocks, 192), dtype=np.uint8)
    scales = random.integers(48, 128, (blocks, 16)) * random.choice([-1, 1], (blocks, 16))
    raw[:, 192:208] = scales.astype(np.int8).view(np.uint8)
    # Quants are uniform in -32..31 (rms 18.5), scales have an rms of about 90.
    d = random.uniform(0.8, 1.2, (blocks, 1)) * std / (18.5 * 90)
    raw[:, 208:] = d.astype(np.float16).view(np.uint8)
    return raw.reshape(rows, -1)


def llama3_factors(tiny):
    """What a converter stores as rope_freqs.weight: divisors of the rotary frequencies."""
    s = tiny.rope_scaling
    d = np.arange(0, tiny.head_dim, 2, dtype=np.float64) / tiny.head_dim
    wavelength = 2 * np.pi * tiny.rope_theta**d
    context = s["original_max_position_embeddings"]
    smooth = (context / wavelength - s["low_freq_factor"]) / (
        s["high_freq_factor"] - s["low_freq_factor"]
    )
    factors = 1 / ((1 - smooth) / s["factor"] + smooth)
    factors[wavelength < context / s["high_freq_factor"]] = 1
    factors[wavelength > context / s["low_freq_factor"]] = s["factor"]
    return factors.astype(np.float32)


def add_vocabulary(writer, vocab):
    state = json.loads(train_tokenizer(vocab).to_str())
    tokens = sorted(state["model"]["vocab"], key=state["model"]["vocab"].get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in state["model"]["merges"]]
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([control if t in SPECIALS else normal for t in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)


def add_deepseek3_keys(writer, tiny):
    writer.add_key_length(tiny.rank + tiny.rope_dim)
    writer.add_value_length(tiny.rank)
    writer.add_key_length_mla(tiny.plain_dim + tiny.rope_dim)
    writer.add_value_length_mla(tiny.value_dim)
    writer.add_kv_lora_rank(tiny.rank)
    if tiny.query_rank:
        writer.add_q_lora_rank(tiny.query_rank)
    writer.add_leading_dense_block_count(len(tiny.dense_layers))
    writer.add_expert_shared_count(tiny.shared)
    writer.add_expert_weights_scale(tiny.expert_scale)
    writer.add_expert_weights_norm(tiny.normalised)
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)


def write_gguf(tiny):
    family = families.FAMILIES[tiny.family]
    writer = gguf.GGUFWriter(OUT / f"{tiny.name}.gguf", family.gguf)
    writer.add_name(tiny.name)
    writer.add_block_count(tiny.layers)
    writer.add_context_length(MAX_POSITIONS)
    writer.add_embedding_length(tiny.hidden)
    writer.add_feed_forward_length(tiny.ffn)
    writer.add_head_count(tiny.heads)
    writer.add_head_count_kv(1 if tiny.rank else tiny.kv_heads)
    writer.add_rope_freq_base(tiny.rope_theta)
    writer.add_rope_dimension_count(tiny.head_dim)
    if tiny.family == "deepseek3":
        add_deepseek3_keys(writer, tiny)
    elif tiny.head_dim * tiny.heads != tiny.hidden:
        writer.add_key_length(tiny.head_dim)
        writer.add_value_length(tiny.head_dim)
    writer.add_layer_norm_rms_eps(tiny.eps)
    if tiny.family == "gemma3":
        writer.add_sliding_window(tiny.window)
    if tiny.experts:
        writer.add_expert_count(tiny.experts)
        writer.add_expert_used_count(tiny.used)
        writer.add_expert_feed_forward_length(tiny.expert_ffn)
    writer.add_vocab_size(tiny.vocab)
    writer.add_file_type(gguf.LlamaFileType[FILE_TYPES.get(tiny.dtype, f"MOSTLY_{tiny.dtype}")])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    if tiny.rope_scaling.get("rope_type") == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(tiny.rope_scaling["factor"])
    if tiny.rope_scaling.get("type") == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(tiny.rope_scaling["factor"])
        writer.add_rope_scaling_orig_ctx_len(
            tiny.rope_scaling["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_log_mul(0.1 * tiny.rope_scaling["mscale_all_dim"])
    add_vocabulary(writer, tiny.vocab)
    if tiny.rope_scaling.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(tiny))
    single, stacks = families.stack_experts(tiny_models.weights(tiny))
    for name in [n for n in single if ".kv_b_proj." in n]:
        layer = f"blk.{name.split('.')[2]}"
        parts = families.split_latent_heads(single.pop(name), tiny.heads, tiny.plain_dim)
        stacks |= dict(zip((f"{layer}.attn_k_b.weight", f"{layer}.attn_v_b.weight"), parts))
    for name, array in (single | stacks).items():
        if family.gguf_pairs and "q_proj" in name:
            array = gguf_model.permute_rows(array, tiny.heads)
        elif family.gguf_pairs and "k_proj" in name:
            array = gguf_model.permute_rows(array, tiny.kv_heads)
        elif "norm" in name:
            array = array + np.float32(family.norm_offset)
        mine = name if name in stacks else families.gguf_name(tiny.family, name)
        if array.ndim == 1:
            writer.add_tensor(mine, array)
            continue
        kind = mine.split(".")[-2]
        name = tiny.types.get(".".join(mine.split(".")[-3:-1]), tiny.types.get(kind, tiny.dtype))
        dtype = gguf.GGMLQuantizationType[name]
        random_blocks = {"Q4_K": random_q4_k, "Q5_K": random_q5_k, "Q6_K": random_q6_k}.get(name)
        if random_blocks:
            raw = random_blocks(f"{tiny.name}/{mine}", *array.shape, array.std())
        else:
            raw = gguf.quants.quantize(np.ascontiguousarray(array), dtype)
        writer.add_tensor(mine, raw, raw_dtype=dtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    wanted = lambda models: [m for m in models if not sys.argv[1:] or m.name in sys.argv[1:]]
    for tiny in wanted(tiny_models.FOLDERS):
        write_folder(tiny)
    for tiny in wanted(tiny_models.GGUFS):
        write_gguf(tiny)
    for tiny in wanted(tiny_models.MLX):
        write_mlx(tiny)
    print("wrote", OUT)


if __name__ == "__main__":
    main()
