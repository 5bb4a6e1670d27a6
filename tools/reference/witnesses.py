"""Log-probabilities of a token sequence by implementations other than lockstep.

Each function returns float64 [len(ids), vocabulary]; row i predicts the token after ids[i].
Everything is computed in float32 unless the function says otherwise; the log-softmax itself is
float64 on top of the implementation's float32 logits.
"""

import json
import os
from importlib.metadata import version
from pathlib import Path

import numpy as np

import gguf_llama


def log_softmax(logits):
    x = np.asarray(logits, dtype=np.float64)
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def versions(*packages):
    return {name: version(name) for name in packages}


def _torch_logits(model, ids):
    import torch

    with torch.inference_mode():
        return model(torch.tensor([ids])).logits[0].numpy()


def transformers_folder(folder):
    """A checkpoint folder -> callable(ids)."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    return lambda ids: log_softmax(_torch_logits(model, ids))


def transformers_gguf(path):
    """A llama GGUF file, dequantised by the gguf package -> callable(ids)."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    source = gguf_llama.read(path)
    config = LlamaConfig(**source.config, attn_implementation="eager")
    model = LlamaForCausalLM(config).float().eval()
    state = {name: torch.from_numpy(array.copy()) for name, array in source.tensors.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    allowed = {"lm_head.weight"} if config.tie_word_embeddings else set()
    if unexpected or not set(missing) <= allowed:
        raise ValueError(f"{path}: missing {missing}, unexpected {unexpected}")
    if source.rope_factors is not None:
        model.model.rotary_emb.inv_freq /= torch.from_numpy(source.rope_factors.copy())
    return lambda ids: log_softmax(_torch_logits(model, ids))


def _classic_rope(config):
    """mlx-lm's llama reads rope_theta and rope_scaling only; both spellings mean the same."""
    rope = config.pop("rope_parameters", None)
    if rope:
        rope = dict(rope)
        config["rope_theta"] = rope.pop("rope_theta")
        if rope.get("rope_type", "default") != "default":
            config["rope_scaling"] = rope
    return config


def mlx_lm_quantized_folder(folder):
    """A folder that mlx-lm has quantised, computed as mlx-lm does, all that is float in float32.

    Returns the callable, and the matrices as mlx expands them, for a second implementation.
    """
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_lm.utils import dequantize_model, load_model

    mx.set_default_device(mx.cpu)

    def widened():
        model, _ = load_model(Path(folder), lazy=True)
        model.set_dtype(mx.float32)
        return model

    model = widened()
    expanded = dict(tree_flatten(dequantize_model(widened()).parameters()))
    tensors = {name: np.array(array.astype(mx.float32)) for name, array in expanded.items()}
    return lambda ids: log_softmax(np.array(model(mx.array([ids]))[0])), tensors


def transformers_tensors(folder, tensors):
    """The configuration of a folder with these float32 tensors -> callable(ids)."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = json.loads((Path(folder) / "config.json").read_text())
    for key in ("quantization", "quantization_config", "architectures", "model_type"):
        config.pop(key, None)
    model = LlamaForCausalLM(LlamaConfig(**config, attn_implementation="eager")).float().eval()
    state = {name: torch.from_numpy(array.copy()) for name, array in tensors.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    allowed = {"lm_head.weight"} if config["tie_word_embeddings"] else set()
    if unexpected or not set(missing) <= allowed:
        raise ValueError(f"{folder}: missing {missing}, unexpected {unexpected}")
    return lambda ids: log_softmax(_torch_logits(model, ids))


def mlx_lm_folder(folder):
    """A checkpoint folder, weights widened to float32 -> callable(ids)."""
    import mlx.core as mx
    from mlx_lm.models import llama

    mx.set_default_device(mx.cpu)
    config = _classic_rope(json.loads((Path(folder) / "config.json").read_text()))
    model = llama.Model(llama.ModelArgs.from_dict(config))
    weights = {}
    for shard in sorted(Path(folder).glob("*.safetensors")):
        weights |= mx.load(str(shard))
    weights = {name: array.astype(mx.float32) for name, array in weights.items()}
    model.load_weights(list(model.sanitize(weights).items()), strict=True)
    return lambda ids: log_softmax(np.array(model(mx.array([ids]))[0]))


def llama_cpp_model(path, vocab_only=False, context=2048):
    """llama.cpp with its defaults (quantised activations, f16 KV), one thread per core."""
    from llama_cpp import Llama

    return Llama(
        str(path),
        n_ctx=context,
        n_batch=context,
        n_threads=os.cpu_count(),
        n_threads_batch=os.cpu_count(),
        logits_all=True,
        vocab_only=vocab_only,
        verbose=False,
    )


def llama_cpp_gguf(path):
    model = llama_cpp_model(path)

    def run(ids):
        model.reset()
        model.eval(ids)
        return log_softmax(model.scores[: len(ids)])

    return run
