"""The tiny random checkpoints: their shapes, and weights that make logits well spread."""

from dataclasses import dataclass, field

import numpy as np

import families


@dataclass(frozen=True)
class Tiny:
    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tied: bool
    dtype: str  # F32 | F16 | BF16, or for GGUF the type of the layers' matrices
    rope_theta: float = 10000.0
    rope_scaling: dict = field(default_factory=dict)
    bias: bool = False
    eps: float = 1e-5
    shards: int = 1
    new_rope_keys: bool = False  # config.json says rope_parameters instead of rope_scaling
    types: dict = field(default_factory=dict)  # GGUF: tensor kind -> type, where not dtype
    # MLX: (bits, group) of all matrices, and of those whose name ends so; None: not quantised
    quantized: tuple = ()
    modules: dict = field(default_factory=dict)
    family: str = "llama"  # of families.py
    window: int = 0  # gemma3: positions that sliding layers see
    pattern: int = 3  # gemma3: every so many layers one sees all
    query_scalar: int = 0  # gemma3's query_pre_attn_scalar; 0: head_dim
    experts: int = 0  # qwen3moe, whose experts have expert_ffn
    used: int = 2  # by each token
    expert_ffn: int = 32
    dense_layers: tuple = ()  # not mixtures of experts
    normalised: bool = True  # norm_topk_prob
    # deepseek3: kv_lora_rank, q_lora_rank (0: none), and the sizes of a head's parts
    rank: int = 0
    query_rank: int = 0
    rope_dim: int = 0
    plain_dim: int = 0
    value_dim: int = 0
    groups: tuple = (1, 1)  # deepseek3: of experts, and how many of them a token uses
    shared: int = 0  # deepseek3: experts that every token uses
    expert_scale: float = 1.0  # deepseek3: routed_scaling_factor
    # qwen35: heads of linear attention (keys, values) and their sizes, taps of its convolution;
    # every `pattern` layers one sees all
    linear_heads: tuple = ()
    linear_dims: tuple = (16, 16)
    taps: int = 4
    rotated: float = 0.25  # qwen35: of a head
    nested: bool = False  # the text's part of a model of text and images
    lengths: tuple = (96, 24, 8)  # of the golden's sequences


LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
LINEAR = {"rope_type": "linear", "factor": 2.5}
YARN = {
    "type": "yarn",
    "factor": 8.0,
    "original_max_position_embeddings": 64,
    "beta_fast": 32,
    "beta_slow": 1,
    "mscale": 0.8,
    "mscale_all_dim": 1.2,
}

FOLDERS = [
    Tiny("tiny-llama-bf16", 64, 2, 4, 2, 32, 96, 384, True, "BF16", rope_theta=100000.0),
    Tiny("tiny-llama-f32", 48, 2, 3, 1, 16, 80, 320, False, "F32", 500000.0, LLAMA3,
         bias=True, eps=1e-6, shards=2),
    Tiny("tiny-llama-f16", 72, 2, 4, 2, 24, 104, 331, False, "F16", 10000.0, LINEAR,
         new_rope_keys=True),
    Tiny("tiny-qwen2-f16", 64, 2, 4, 2, 16, 96, 320, False, "F16", 1000000.0, family="qwen2",
         eps=1e-6),
    Tiny("tiny-qwen3-bf16", 64, 2, 4, 2, 32, 96, 320, True, "BF16", 1000000.0, family="qwen3",
         eps=1e-6),
    Tiny("tiny-qwen3-f32", 48, 2, 3, 1, 24, 80, 320, False, "F32", 10000.0, LINEAR,
         family="qwen3", eps=1e-6, new_rope_keys=True),
    Tiny("tiny-qwen3moe-bf16", 64, 3, 4, 2, 16, 96, 320, False, "BF16", 1000000.0,
         family="qwen3moe", eps=1e-6, experts=8, used=3, dense_layers=(1,), normalised=False),
    # Over the boundary of attention's splits.
    Tiny("tiny-qwen35-bf16", 64, 3, 2, 1, 32, 96, 320, True, "BF16", 100000.0, family="qwen35",
         eps=1e-6, linear_heads=(2, 4), nested=True, new_rope_keys=True, lengths=(280, 8)),
    Tiny("tiny-qwen35-f32", 48, 2, 3, 1, 16, 64, 320, False, "F32", 10000.0, family="qwen35",
         eps=1e-6, pattern=2, linear_heads=(2, 2), linear_dims=(16, 32), taps=3, rotated=0.5,
         new_rope_keys=True),
    # hidden is a square: mlx-lm rounds the embedding's factor to bf16, transformers only in bf16.
    Tiny("tiny-gemma3-bf16", 64, 4, 4, 1, 32, 96, 320, True, "BF16", 1000000.0, LINEAR,
         family="gemma3", eps=1e-6, window=16),
    # Far past the window, which itself crosses the splits of attention.
    Tiny("tiny-gemma3-f32", 64, 3, 4, 2, 16, 80, 320, True, "F32", 100000.0,
         family="gemma3", eps=1e-6, window=70, query_scalar=24, new_rope_keys=True,
         lengths=(400, 8)),
    # Over the boundary of attention's splits. Of these models the scale of the experts' weights is
    # small, since random scores are often nearly level and another expert weighs as much.
    Tiny("tiny-deepseek3-bf16", 64, 2, 4, 4, 16, 96, 320, False, "BF16", 10000.0, YARN,
         family="deepseek3", eps=1e-6, rank=32, query_rank=24, rope_dim=16, plain_dim=16,
         value_dim=16, experts=8, used=3, expert_ffn=16, dense_layers=(0,), groups=(4, 2), shared=1,
         expert_scale=0.4, lengths=(280, 8)),
    Tiny("tiny-deepseek3-f16", 48, 2, 3, 3, 8, 80, 320, False, "F16", 50000.0,
         family="deepseek3", eps=1e-6, bias=True, rank=48, rope_dim=8, plain_dim=24, value_dim=32,
         experts=6, used=2, expert_ffn=16, shared=2, normalised=False, new_rope_keys=True),
]
GGUFS = [
    Tiny("tiny-llama-gguf-f16", 64, 1, 4, 2, 16, 96, 320, False, "F16", 500000.0, LLAMA3),
    Tiny("tiny-llama-gguf-bf16", 64, 1, 4, 4, 16, 96, 320, True, "BF16", 10000.0, LINEAR),
    Tiny("tiny-llama-q8_0", 128, 1, 4, 2, 32, 192, 320, True, "Q8_0"),
    Tiny("tiny-llama-q4_1", 128, 2, 4, 2, 32, 160, 320, True, "Q4_1", 100000.0,
         types={"token_embd": "Q8_0"}),
    Tiny("tiny-llama-q4_0-q6_k", 256, 1, 2, 1, 64, 256, 288, False, "Q4_0",
         types={"output": "Q6_K", "attn_v": "Q6_K", "ffn_down": "Q6_K"}),
    Tiny("tiny-llama-q5_0-q5_1", 64, 1, 4, 2, 16, 96, 320, True, "Q5_0", 100000.0,
         types={"attn_v": "Q5_1", "ffn_down": "Q5_1", "token_embd": "Q8_0"}),
    # What llama.cpp calls Q4_K_M and Q5_K_M: the wider type for half of attn_v and ffn_down (here
    # the first layer's) and for the head.
    Tiny("tiny-llama-q4_k_m", 256, 2, 4, 2, 64, 256, 288, True, "Q4_K",
         types={"token_embd": "Q6_K", "0.attn_v": "Q6_K", "0.ffn_down": "Q6_K"}),
    Tiny("tiny-llama-q5_k_m", 256, 1, 4, 2, 64, 256, 288, False, "Q5_K", 100000.0,
         types={"output": "Q6_K", "attn_v": "Q6_K", "token_embd": "Q5_K", "attn_k": "Q4_K"}),
    Tiny("tiny-llama-gguf-f32", 64, 1, 4, 2, 16, 96, 320, False, "F32", 10000.0, bias=True),
    Tiny("tiny-qwen2-q8_0", 64, 1, 4, 2, 16, 96, 320, True, "Q8_0", 1000000.0, family="qwen2"),
    Tiny("tiny-qwen3-q4_0", 128, 2, 4, 2, 64, 160, 320, True, "Q4_0", 1000000.0, family="qwen3",
         types={"token_embd": "Q8_0"}),
    Tiny("tiny-qwen3moe-q8_0", 64, 2, 4, 2, 16, 96, 320, True, "Q8_0", 1000000.0,
         family="qwen3moe", experts=6, used=2, types={"ffn_gate_inp": "F32"}),
    Tiny("tiny-deepseek3-q8_0", 64, 2, 4, 4, 32, 96, 320, False, "Q8_0", 10000.0,
         YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}, family="deepseek3", rank=32, query_rank=32,
         rope_dim=32, plain_dim=32, value_dim=16, experts=8, used=3, expert_ffn=32,
         dense_layers=(0,), shared=1, expert_scale=0.15, types={"ffn_gate_inp": "F32"}),
    Tiny("tiny-gemma3-q4_1", 128, 7, 4, 1, 32, 160, 320, True, "Q4_1", 1000000.0, LINEAR,
         family="gemma3", window=16, pattern=6, types={"token_embd": "Q8_0"}),
]
MLX = [
    Tiny("tiny-llama-mlx-4-g64", 128, 2, 4, 2, 32, 192, 320, True, "BF16", quantized=(4, 64)),
    Tiny("tiny-llama-mlx-8-g32", 64, 2, 4, 2, 16, 96, 320, False, "F16", 500000.0, LLAMA3,
         quantized=(8, 32)),
    Tiny("tiny-llama-mlx-3-6-g128", 128, 2, 4, 2, 32, 256, 320, True, "BF16", 100000.0,
         quantized=(3, 128), modules={"embed_tokens": (6, 128), "down_proj": (6, 64)}),
    Tiny("tiny-llama-mlx-mixed", 128, 2, 4, 2, 32, 192, 320, False, "F32", quantized=(5, 32),
         modules={"v_proj": (8, 64), "layers.1.mlp.gate_proj": (2, 32), "o_proj": None,
                  "lm_head": None}),
    Tiny("tiny-qwen3-mlx-4-g64", 128, 2, 4, 2, 32, 192, 320, True, "BF16", 1000000.0,
         family="qwen3", eps=1e-6, quantized=(4, 64)),
    Tiny("tiny-qwen3moe-mlx-4-g32", 64, 2, 4, 2, 16, 96, 320, False, "BF16", 1000000.0,
         family="qwen3moe", eps=1e-6, experts=6, used=2, quantized=(4, 32),
         modules={"mlp.gate": (8, 64)}),
    Tiny("tiny-qwen35-mlx-8-g32", 64, 2, 2, 1, 32, 96, 320, False, "BF16", 100000.0,
         family="qwen35", eps=1e-6, pattern=2, linear_heads=(2, 4), nested=True, new_rope_keys=True,
         quantized=(8, 32)),
    Tiny("tiny-gemma3-mlx-8-g32", 64, 4, 4, 1, 32, 96, 320, True, "BF16", 1000000.0, LINEAR,
         family="gemma3", eps=1e-6, window=16, quantized=(8, 32)),
    Tiny("tiny-deepseek3-mlx-4-g32", 64, 2, 4, 4, 32, 96, 320, False, "BF16", 10000.0, YARN,
         family="deepseek3", eps=1e-6, quantized=(4, 32), rank=32, query_rank=32, rope_dim=32,
         plain_dim=32, value_dim=16, experts=8, used=2, expert_ffn=32, dense_layers=(0,),
         groups=(2, 1), shared=1, expert_scale=0.15),
]


def rng(name, tensor):
    """Each tensor has its own stream, so adding one tensor changes no other."""
    return np.random.Generator(np.random.PCG64(list(f"{name}/{tensor}".encode())))


def weights(tiny):
    """transformers' tensor names -> float32 arrays, in the order of a saved checkpoint."""
    q, kv = tiny.heads * tiny.head_dim, tiny.kv_heads * tiny.head_dim
    spread = 2.5 / np.sqrt(tiny.hidden)  # logits of a unit-RMS hidden state: std 2.5
    out = {}

    def normal(name, shape, std):
        out[name] = (rng(tiny.name, name).standard_normal(shape) * std).astype(np.float32)

    def linear(name, rows, cols, gain, bias):
        normal(name + ".weight", (rows, cols), gain / np.sqrt(cols))
        if bias:
            normal(name + ".bias", (rows,), 0.3)

    offset = families.FAMILIES[tiny.family].norm_offset
    gemma = tiny.family == "gemma3"
    head_norms = tiny.family in ("qwen3", "qwen3moe", "gemma3", "qwen35")
    qkv_bias = tiny.bias or tiny.family == "qwen2"
    deepseek = tiny.family == "deepseek3"
    mlp_bias = tiny.bias and not deepseek

    def norm(name, size=tiny.hidden):
        weight = rng(tiny.name, name).uniform(0.6, 1.4, size)
        out[name] = (weight - offset).astype(np.float32)

    def latent_attention(prefix):
        query = tiny.heads * (tiny.plain_dim + tiny.rope_dim)
        if tiny.query_rank:
            linear(prefix + "q_a_proj", tiny.query_rank, tiny.hidden, 1.0, tiny.bias)
            norm(prefix + "q_a_layernorm.weight", tiny.query_rank)
            linear(prefix + "q_b_proj", query, tiny.query_rank, 1.4, False)
        else:
            linear(prefix + "q_proj", query, tiny.hidden, 1.4, False)
        linear(prefix + "kv_a_proj_with_mqa", tiny.rank + tiny.rope_dim, tiny.hidden, 1.0,
               tiny.bias)
        norm(prefix + "kv_a_layernorm.weight", tiny.rank)
        linear(prefix + "kv_b_proj", tiny.heads * (tiny.plain_dim + tiny.value_dim), tiny.rank,
               1.2, False)
        linear(prefix + "o_proj", tiny.hidden, tiny.heads * tiny.value_dim, 1.5, tiny.bias)

    def linear_attention(prefix):
        (keys, values), (key, value) = tiny.linear_heads, tiny.linear_dims
        channels = 2 * keys * key + values * value
        linear(prefix + "in_proj_qkv", channels, tiny.hidden, 1.0, False)
        linear(prefix + "in_proj_z", values * value, tiny.hidden, 1.0, False)
        linear(prefix + "in_proj_b", values, tiny.hidden, 1.4, False)
        linear(prefix + "in_proj_a", values, tiny.hidden, 1.4, False)
        normal(prefix + "conv1d.weight", (channels, 1, tiny.taps), 0.7)
        # Memories from one token to hundreds.
        for name, low, high in (("A_log", -4, 2), ("dt_bias", -3, 0.5)):
            drawn = rng(tiny.name, prefix + name).uniform(low, high, values)
            out[prefix + name] = drawn.astype(np.float32)
        scale = rng(tiny.name, prefix + "norm").uniform(0.6, 1.4, value)
        out[prefix + "norm.weight"] = scale.astype(np.float32)
        linear(prefix + "out_proj", tiny.hidden, values * value, 1.0, False)

    def self_attention(prefix):
        gates = 2 if tiny.linear_heads else 1
        linear(prefix + "q_proj", gates * q, tiny.hidden, 1.4, qkv_bias)
        linear(prefix + "k_proj", kv, tiny.hidden, 1.4, qkv_bias)
        linear(prefix + "v_proj", kv, tiny.hidden, 1.0, qkv_bias)
        linear(prefix + "o_proj", tiny.hidden, q, 1.5, tiny.bias)
        if head_norms:
            norm(prefix + "q_norm.weight", tiny.head_dim)
            norm(prefix + "k_norm.weight", tiny.head_dim)

    normal("model.embed_tokens.weight", (tiny.vocab, tiny.hidden), spread if tiny.tied else 1.0)
    for i in range(tiny.layers):
        layer = f"model.layers.{i}."
        norm(layer + "input_layernorm.weight")
        if deepseek:
            latent_attention(layer + "self_attn.")
        elif tiny.linear_heads and (i + 1) % tiny.pattern:
            linear_attention(layer + "linear_attn.")
        else:
            self_attention(layer + "self_attn.")
        norm(layer + "post_attention_layernorm.weight")
        if gemma:
            norm(layer + "pre_feedforward_layernorm.weight")
        sparse = tiny.experts and i not in tiny.dense_layers
        if sparse:
            linear(layer + "mlp.gate", tiny.experts, tiny.hidden, 1.5, False)
            if deepseek:
                # Not below 0: mlx-lm gives experts of other groups the score 0.
                name = layer + "mlp.gate.e_score_correction_bias"
                out[name] = rng(tiny.name, name).uniform(0, 0.3, tiny.experts).astype(np.float32)
        ffns = {"": tiny.ffn}
        if sparse:
            ffns = {f"experts.{expert}.": tiny.expert_ffn for expert in range(tiny.experts)}
            if tiny.shared:
                ffns["shared_experts."] = tiny.shared * tiny.expert_ffn
        for prefix, width in ffns.items():
            ffn = layer + "mlp." + prefix
            linear(ffn + "gate_proj", width, tiny.hidden, 1.4, mlp_bias)
            linear(ffn + "up_proj", width, tiny.hidden, 1.0, mlp_bias)
            linear(ffn + "down_proj", tiny.hidden, width, 1.5, mlp_bias)
        if gemma:
            norm(layer + "post_feedforward_layernorm.weight")
    norm("model.norm.weight")
    if not tiny.tied:
        normal("lm_head.weight", (tiny.vocab, tiny.hidden), spread)
    if tiny.nested:
        _, _, prefix = families.AROUND[tiny.family]
        out = {name.replace("model.", prefix, 1): array for name, array in out.items()}
    return out
