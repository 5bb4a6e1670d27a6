"""What tells the architectures apart: the names that files give tensors, and what they mean by them."""

from dataclasses import dataclass, field

import numpy as np

# GGUF's name of a layer's tensor -> transformers' name of the module.
ATTENTION = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
}
HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
FFN = {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
ROUTER = {"ffn_gate_inp": "mlp.gate"}
# GGUF stacks what transformers' folders keep one by one: mlp.experts.N.<module>.
EXPERTS = {"ffn_gate_exps": "gate_proj", "ffn_up_exps": "up_proj", "ffn_down_exps": "down_proj"}
LATENT = {
    "attn_q": "self_attn.q_proj",
    "attn_q_a": "self_attn.q_a_proj",
    "attn_q_a_norm": "self_attn.q_a_layernorm",
    "attn_q_b": "self_attn.q_b_proj",
    "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
    "attn_kv_a_norm": "self_attn.kv_a_layernorm",
    "attn_output": "self_attn.o_proj",
}
SHARED = {
    "ffn_gate_shexp": "mlp.shared_experts.gate_proj",
    "ffn_up_shexp": "mlp.shared_experts.up_proj",
    "ffn_down_shexp": "mlp.shared_experts.down_proj",
}
CORRECTION = ("exp_probs_b.bias", "mlp.gate.e_score_correction_bias")
NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
GEMMA_NORMS = {
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


@dataclass(frozen=True)
class Family:
    hf: str  # the entry of "architectures"
    model_type: str
    gguf: str  # general.architecture
    layer_names: dict = field(default_factory=dict)
    gguf_pairs: bool = False  # GGUF keeps the rows of q and k in the order of rotated pairs
    norm_offset: float = 0.0  # GGUF's weights of norms less transformers'


FAMILIES = {
    "llama": Family("LlamaForCausalLM", "llama", "llama", ATTENTION | FFN | NORMS, gguf_pairs=True),
    "qwen2": Family("Qwen2ForCausalLM", "qwen2", "qwen2", ATTENTION | FFN | NORMS),
    "qwen3": Family("Qwen3ForCausalLM", "qwen3", "qwen3", ATTENTION | HEAD_NORMS | FFN | NORMS),
    "qwen3moe": Family("Qwen3MoeForCausalLM", "qwen3_moe", "qwen3moe",
                       ATTENTION | HEAD_NORMS | FFN | NORMS | ROUTER),
    "deepseek3": Family("DeepseekV3ForCausalLM", "deepseek_v3", "deepseek2",
                        LATENT | FFN | NORMS | ROUTER | SHARED),
    "qwen35": Family("Qwen3_5ForCausalLM", "qwen3_5_text", "qwen35", norm_offset=1.0),
    "gemma3": Family("Gemma3ForCausalLM", "gemma3_text", "gemma3",
                     ATTENTION | HEAD_NORMS | FFN | GEMMA_NORMS, norm_offset=1.0),
}


# The model of text and images that a family is a part of: its name, type and where the part is.
AROUND = {"qwen35": ("Qwen3_5ForConditionalGeneration", "qwen3_5", "model.language_model.")}


def of_gguf(architecture):
    return next(name for name, family in FAMILIES.items() if family.gguf == architecture)


def gguf_name(family, name):
    """transformers' name of a tensor -> GGUF's."""
    for mine, theirs in TOP_NAMES.items():
        if theirs == name:
            return mine
    _, _, index, rest = name.split(".", 3)
    if rest == CORRECTION[1]:
        return f"blk.{index}.{CORRECTION[0]}"
    module, suffix = rest.rsplit(".", 1)
    kind = next(k for k, v in FAMILIES[family].layer_names.items() if v == module)
    return f"blk.{index}.{kind}.{suffix}"


def hf_name(family, name):
    """GGUF's name of a tensor -> transformers'."""
    if name in TOP_NAMES:
        return TOP_NAMES[name]
    block, index, kind, suffix = name.split(".")
    if block != "blk":
        raise ValueError(f"unknown tensor {name}")
    if f"{kind}.{suffix}" == CORRECTION[0]:
        return f"model.layers.{index}.{CORRECTION[1]}"
    return f"model.layers.{index}.{FAMILIES[family].layer_names[kind]}.{suffix}"


def stack_experts(tensors):
    """transformers' tensors with those of a layer's experts stacked under GGUF's names."""
    out, stacks = {}, {}
    for name, array in tensors.items():
        layer, found, rest = name.partition(".mlp.experts.")
        if not found:
            out[name] = array
            continue
        expert, module, _ = rest.split(".")
        kind = next(k for k, v in EXPERTS.items() if v == module)
        stack = stacks.setdefault(f"blk.{layer.split('.')[-1]}.{kind}.weight", {})
        stack[int(expert)] = array
    return out, {k: np.stack([v[e] for e in sorted(v)]) for k, v in stacks.items()}


def join_latent_heads(absorb, expand):
    """What mlx-lm keeps of latent attention, [heads, rank, plain] and [heads, value, rank] ->
    transformers' kv_b_proj."""
    both = np.concatenate([absorb.swapaxes(1, 2), expand], axis=1)
    return both.reshape(-1, both.shape[-1])


def split_latent_heads(array, heads, plain):
    """kv_b_proj -> what join_latent_heads joins; GGUF calls them attn_k_b and attn_v_b."""
    by_head = array.reshape(heads, -1, array.shape[-1])
    return np.ascontiguousarray(by_head[:, :plain].swapaxes(1, 2)), by_head[:, plain:]


def unstack_experts(layer, kind, array):
    """A stacked tensor of GGUF's `kind` -> transformers' tensors."""
    prefix = f"model.layers.{layer}.mlp.experts."
    return {f"{prefix}{e}.{EXPERTS[kind]}.weight": array[e] for e in range(len(array))}
