"""Reads a GGUF file into what transformers wants, in float32: a config.json and named tensors.

Independent of lockstep's own reader: the container and the block formats are decoded by the
`gguf` package. GGUF keeps the rows of llama's q and k projections in the order of rotated pairs
(x0, x1), (x2, x3)...; transformers rotates (x0, x[d/2])..., so those rows are put back. GGUF keeps
the weights of Gemma's norms with the 1 added that transformers adds itself.
"""

from dataclasses import dataclass

import gguf
import numpy as np

import families

GEMMA_PATTERN = 6  # what files mean that do not say which layers see all positions


@dataclass
class GgufModel:
    config: dict  # config.json
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

    arch = field("general.architecture")
    family = families.of_gguf(arch)
    heads = field(f"{arch}.attention.head_count")
    hidden = field(f"{arch}.embedding_length")
    head_dim = field(f"{arch}.attention.key_length", hidden // heads)
    layers = field(f"{arch}.block_count")
    scaling = field(f"{arch}.rope.scaling.type", "none")
    rope = {"rope_type": "default", "rope_theta": field(f"{arch}.rope.freq_base", 10000.0)}
    if scaling == "linear":
        rope |= {"rope_type": "linear", "factor": field(f"{arch}.rope.scaling.factor")}
    elif scaling == "yarn":
        all_dim = 10 * field(f"{arch}.rope.scaling.yarn_log_multiplier")
        rope |= {
            "rope_type": "yarn",
            "factor": field(f"{arch}.rope.scaling.factor"),
            "original_max_position_embeddings": field(
                f"{arch}.rope.scaling.original_context_length"),
            "mscale": all_dim,
            "mscale_all_dim": all_dim,
        }
    elif scaling != "none":
        raise ValueError(f"{arch}.rope.scaling.type {scaling} is not handled")
    config = {
        "architectures": [families.FAMILIES[family].hf],
        "model_type": families.FAMILIES[family].model_type,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "intermediate_size": field(f"{arch}.feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": field(f"{arch}.attention.head_count_kv", heads),
        "head_dim": head_dim,
        "rms_norm_eps": field(f"{arch}.attention.layer_norm_rms_epsilon"),
        "max_position_embeddings": field(f"{arch}.context_length"),
        "rope_parameters": rope,
    }
    if family == "qwen3moe":
        config |= {
            "num_experts": field(f"{arch}.expert_count"),
            "num_experts_per_tok": field(f"{arch}.expert_used_count"),
            "moe_intermediate_size": field(f"{arch}.expert_feed_forward_length"),
            "norm_topk_prob": True,
            "mlp_only_layers": [],
        }
    if family == "deepseek3":
        rotated = field(f"{arch}.rope.dimension_count")
        del config["head_dim"]
        config |= {
            "num_key_value_heads": heads,
            "kv_lora_rank": field(f"{arch}.attention.kv_lora_rank"),
            "q_lora_rank": field(f"{arch}.attention.q_lora_rank", 0) or None,
            "qk_rope_head_dim": rotated,
            "qk_nope_head_dim": field(f"{arch}.attention.key_length_mla") - rotated,
            "v_head_dim": field(f"{arch}.attention.value_length_mla"),
            "n_routed_experts": field(f"{arch}.expert_count"),
            "n_shared_experts": field(f"{arch}.expert_shared_count"),
            "num_experts_per_tok": field(f"{arch}.expert_used_count"),
            "moe_intermediate_size": field(f"{arch}.expert_feed_forward_length"),
            "norm_topk_prob": field(f"{arch}.expert_weights_norm"),
            "routed_scaling_factor": field(f"{arch}.expert_weights_scale"),
            "n_group": 1,
            "topk_group": 1,
            "first_k_dense_replace": field(f"{arch}.leading_dense_block_count"),
            "num_nextn_predict_layers": 0,
        }
    if family == "gemma3":
        pattern = field("gemma3.attention.sliding_window_pattern", GEMMA_PATTERN)
        if isinstance(pattern, int):
            pattern = [(i + 1) % pattern != 0 for i in range(layers)]
        local = field("gemma3.rope.freq_base_swa", 10000.0)
        config |= {
            "query_pre_attn_scalar": head_dim,
            "sliding_window": field("gemma3.attention.sliding_window"),
            "layer_types": ["sliding_attention" if s else "full_attention" for s in pattern],
            "rope_parameters": {
                "full_attention": rope,
                "sliding_attention": {"rope_type": "default", "rope_theta": local},
            },
        }
    return family, config


def read(path):
    reader = gguf.GGUFReader(path)
    family, config = _config(reader)
    tensors, rope_factors, latent = {}, None, {}
    for tensor in reader.tensors:
        array = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        array = np.ascontiguousarray(array, dtype=np.float32)
        if tensor.name == "rope_freqs.weight":
            rope_factors = array
            continue
        kind = tensor.name.split(".")[-2]
        if kind in families.EXPERTS:
            tensors |= families.unstack_experts(tensor.name.split(".")[1], kind, array)
            continue
        if kind in ("attn_k_b", "attn_v_b"):
            latent.setdefault(tensor.name.split(".")[1], {})[kind] = array
            continue
        name = families.hf_name(family, tensor.name)
        if families.FAMILIES[family].gguf_pairs and "q_proj" in name:
            array = unpermute_rows(array, config["num_attention_heads"])
        elif families.FAMILIES[family].gguf_pairs and "k_proj" in name:
            array = unpermute_rows(array, config["num_key_value_heads"])
        elif "norm" in name:
            array = array - np.float32(families.FAMILIES[family].norm_offset)
        tensors[name] = array
    for layer, parts in latent.items():
        tensors[f"model.layers.{layer}.self_attn.kv_b_proj.weight"] = families.join_latent_heads(
            parts["attn_k_b"], parts["attn_v_b"])
    config["vocab_size"] = tensors["model.embed_tokens.weight"].shape[0]
    config["tie_word_embeddings"] = "lm_head.weight" not in tensors
    if family != "qwen2":  # whose biases go without saying
        config["attention_bias"] = "model.layers.0.self_attn.q_proj.bias" in tensors
    if family == "llama":
        config["mlp_bias"] = "model.layers.0.mlp.gate_proj.bias" in tensors
    return GgufModel(config, tensors, rope_factors)
