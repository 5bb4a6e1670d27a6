"""Reads a llama GGUF file into what transformers' LlamaForCausalLM wants, in float32.

Independent of lockstep's own reader: the container and the block formats are decoded by the
`gguf` package. GGUF keeps the rows of the q and k projections in the order of rotated pairs
(x0, x1), (x2, x3)...; transformers rotates (x0, x[d/2])..., so those rows are put back.
"""

from dataclasses import dataclass

import gguf
import numpy as np

LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


@dataclass
class GgufLlama:
    config: dict  # keyword arguments of transformers.LlamaConfig
    tensors: dict  # transformers' names -> float32 arrays
    rope_factors: np.ndarray | None  # [head_dim / 2], each divides one rotary frequency


def permute_rows(array, heads):
    """transformers' order of q or k rows -> GGUF's; array is [heads * head_dim, ...]."""
    split = array.reshape(heads, 2, array.shape[0] // heads // 2, *array.shape[1:])
    return split.swapaxes(1, 2).reshape(array.shape)


def unpermute_rows(array, heads):
    """GGUF's order of q or k rows -> transformers'."""
    split = array.reshape(heads, array.shape[0] // heads // 2, 2, *array.shape[1:])
    return split.swapaxes(1, 2).reshape(array.shape)


def _config(reader):
    def field(name, default=None):
        found = reader.get_field(name)
        if found is None:
            if default is None:
                raise KeyError(name)
            return default
        return found.contents()

    architecture = field("general.architecture")
    if architecture != "llama":
        raise ValueError(f"general.architecture is {architecture}, not llama")
    heads = field("llama.attention.head_count")
    hidden = field("llama.embedding_length")
    scaling = field("llama.rope.scaling.type", "none")
    rope = {"rope_type": "default", "rope_theta": field("llama.rope.freq_base", 10000.0)}
    if scaling == "linear":
        rope |= {"rope_type": "linear", "factor": field("llama.rope.scaling.factor")}
    elif scaling != "none":
        raise ValueError(f"llama.rope.scaling.type {scaling} is not handled")
    return {
        "hidden_size": hidden,
        "num_hidden_layers": field("llama.block_count"),
        "intermediate_size": field("llama.feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": field("llama.attention.head_count_kv", heads),
        "head_dim": field("llama.attention.key_length", hidden // heads),
        "rms_norm_eps": field("llama.attention.layer_norm_rms_epsilon"),
        "max_position_embeddings": field("llama.context_length"),
        "rope_parameters": rope,
    }


def read(path):
    reader = gguf.GGUFReader(path)
    config = _config(reader)
    tensors, rope_factors = {}, None
    for tensor in reader.tensors:
        array = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        array = np.ascontiguousarray(array, dtype=np.float32)
        if tensor.name == "rope_freqs.weight":
            rope_factors = array
            continue
        if tensor.name in TOP_NAMES:
            tensors[TOP_NAMES[tensor.name]] = array
            continue
        block, index, kind, suffix = tensor.name.split(".")
        if block != "blk":
            raise ValueError(f"unknown tensor {tensor.name}")
        if kind == "attn_q":
            array = unpermute_rows(array, config["num_attention_heads"])
        elif kind == "attn_k":
            array = unpermute_rows(array, config["num_key_value_heads"])
        tensors[f"model.layers.{index}.{LAYER_NAMES[kind]}.{suffix}"] = array
    config["vocab_size"] = tensors["model.embed_tokens.weight"].shape[0]
    config["tie_word_embeddings"] = "lm_head.weight" not in tensors
    config["attention_bias"] = "model.layers.0.self_attn.q_proj.bias" in tensors
    config["mlp_bias"] = "model.layers.0.mlp.gate_proj.bias" in tensors
    return GgufLlama(config, tensors, rope_factors)
