"""config.json of the tiny models: what each family's folders say, in its own keys."""

import families

MAX_POSITIONS = 512


def gemma3_keys(tiny, config):
    """Replaces what Gemma 3 says in its own way."""
    del config["hidden_act"]
    config["hidden_activation"] = "gelu_pytorch_tanh"
    config["query_pre_attn_scalar"] = tiny.query_scalar or tiny.head_dim
    config["sliding_window"] = tiny.window
    local = {"rope_type": "default", "rope_theta": 10000.0}
    if not tiny.new_rope_keys:
        config["sliding_window_pattern"] = tiny.pattern
        config["rope_local_base_freq"] = local["rope_theta"]
        return
    full = {"rope_type": "default"} | config.pop("rope_parameters")
    config["rope_parameters"] = {"full_attention": full, "sliding_attention": local}
    config["layer_types"] = [
        "full_attention" if (i + 1) % tiny.pattern == 0 else "sliding_attention"
        for i in range(tiny.layers)
    ]


def deepseek3_keys(tiny, config):
    del config["head_dim"]
    config |= {
        "kv_lora_rank": tiny.rank,
        "q_lora_rank": tiny.query_rank or None,
        "qk_rope_head_dim": tiny.rope_dim,
        "qk_nope_head_dim": tiny.plain_dim,
        "v_head_dim": tiny.value_dim,
        "n_routed_experts": tiny.experts,
        "n_shared_experts": tiny.shared,
        "num_experts_per_tok": tiny.used,
        "moe_intermediate_size": tiny.expert_ffn,
        "norm_topk_prob": tiny.normalised,
        "routed_scaling_factor": tiny.expert_scale,
        "n_group": tiny.groups[0],
        "topk_group": tiny.groups[1],
        "first_k_dense_replace": len(tiny.dense_layers),
        "moe_layer_freq": 1,
        "scoring_func": "sigmoid",
        "topk_method": "noaux_tc",
        "num_nextn_predict_layers": 0,
    }


def qwen35_keys(tiny, config):
    config["rope_parameters"] |= {"rope_type": "default", "partial_rotary_factor": tiny.rotated}
    config["full_attention_interval"] = tiny.pattern
    config["layer_types"] = [
        "full_attention" if (i + 1) % tiny.pattern == 0 else "linear_attention"
        for i in range(tiny.layers)
    ]
    config["linear_num_key_heads"], config["linear_num_value_heads"] = tiny.linear_heads
    config["linear_key_head_dim"], config["linear_value_head_dim"] = tiny.linear_dims
    config["linear_conv_kernel_dim"] = tiny.taps


def around(tiny, config):
    """The configuration of a model of text and images with `config` for its text."""
    architecture, model_type, _ = families.AROUND[tiny.family]
    del config["architectures"]
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "tie_word_embeddings": tiny.tied,
        "text_config": config,
    }


def config_of(tiny):
    names = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
    family = families.FAMILIES[tiny.family]
    config = {
        "architectures": [family.hf],
        "model_type": family.model_type,
        "hidden_size": tiny.hidden,
        "intermediate_size": tiny.ffn,
        "num_hidden_layers": tiny.layers,
        "num_attention_heads": tiny.heads,
        "num_key_value_heads": tiny.kv_heads,
        "head_dim": tiny.head_dim,
        "hidden_act": "silu",
        "attention_bias": tiny.bias,
        "mlp_bias": tiny.bias,
        "rms_norm_eps": tiny.eps,
        "max_position_embeddings": MAX_POSITIONS,
        "vocab_size": tiny.vocab,
        "tie_word_embeddings": tiny.tied,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
    }
    if tiny.family in ("llama", "qwen2") and tiny.head_dim * tiny.heads == tiny.hidden:
        del config["head_dim"]
    if tiny.family != "llama":
        del config["mlp_bias"]
    if tiny.family == "qwen2":
        del config["attention_bias"]
    if tiny.new_rope_keys:
        config["rope_parameters"] = {"rope_theta": tiny.rope_theta} | tiny.rope_scaling
        config["dtype"] = names[tiny.dtype]
    else:
        config["rope_theta"] = tiny.rope_theta
        config["rope_scaling"] = tiny.rope_scaling or None
        config["torch_dtype"] = names[tiny.dtype]
    if tiny.family == "gemma3":
        gemma3_keys(tiny, config)
    if tiny.family == "deepseek3":
        deepseek3_keys(tiny, config)
    elif tiny.experts:
        config |= {
            "num_experts": tiny.experts,
            "num_experts_per_tok": tiny.used,
            "moe_intermediate_size": tiny.expert_ffn,
            "norm_topk_prob": tiny.normalised,
            "decoder_sparse_step": 1,
            "mlp_only_layers": list(tiny.dense_layers),
        }
    if tiny.family == "qwen35":
        qwen35_keys(tiny, config)
    return around(tiny, config) if tiny.nested else config
