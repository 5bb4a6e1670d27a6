"""Log-probabilities of a token sequence by implementations other than lockstep.

Each function returns float64 [len(ids), vocabulary]; row i predicts the token after ids[i].
Everything is computed in float32 unless the function says otherwise; the log-softmax itself is
float64 on top of the implementation's float32 logits.
"""

import importlib
import json
import os
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

import families
import gguf_model


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
    return _run(_load_folder(folder))


def _load_folder(folder):
    import torch
    from transformers import AutoModelForCausalLM

    model, report = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    problems = {name: names for name, names in report.items() if names and name != "error_msgs"}
    if problems:
        raise ValueError(f"{folder}: {problems}")
    return model.eval()


def _run(model):
    return lambda ids: log_softmax(_torch_logits(model, ids))


def transformers_tensors(config, tensors):
    """A config.json's content and float32 tensors -> callable(ids)."""
    return _run(_transformers_tensors(config, tensors))


def _transformers_tensors(config, tensors):
    from safetensors.numpy import save_file

    with tempfile.TemporaryDirectory() as folder:
        config = {k: v for k, v in config.items() if not k.startswith("quantization")}
        (Path(folder) / "config.json").write_text(json.dumps(config))
        contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
        save_file(contiguous, Path(folder) / "model.safetensors", {"format": "pt"})
        return _load_folder(folder)


def transformers_gguf(path):
    """A GGUF file, dequantised by the gguf package -> callable(ids)."""
    import torch

    source = gguf_model.read(path)
    model = _transformers_tensors(source.config, source.tensors)
    if source.rope_factors is not None:
        model.model.rotary_emb.inv_freq /= torch.from_numpy(source.rope_factors.copy())
    return _run(model)


def transformers_gguf_parts(path, rows=128):
    """As transformers_gguf, for vocabularies that are large: callable(ids) that yields [<= rows,
    vocabulary] after [<= rows, vocabulary]."""
    import torch

    source = gguf_model.read(path)
    model = _transformers_tensors(source.config, source.tensors)

    def run(ids):
        with torch.inference_mode():
            hidden = model.model(torch.tensor([ids])).last_hidden_state[0]
            for part in hidden.split(rows):
                yield log_softmax(model.lm_head(part).numpy())

    return run


def _classic_keys(config):
    """What mlx-lm reads, where transformers has newer keys; both spellings mean the same."""
    rope = config.pop("rope_parameters", None)
    if rope and "full_attention" in rope:
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        config["sliding_window_pattern"] = config.pop("layer_types").index("full_attention") + 1
        rope = rope["full_attention"]
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
    plain = widened()
    latent = _expand_latent_heads(plain)
    expanded = dict(tree_flatten(dequantize_model(plain).parameters()))
    tensors = {}
    for name, array in expanded.items():
        array = np.array(array.astype(mx.float32))
        layer, stacked, module = name.partition(".mlp.switch_mlp.")
        if ".embed_q." in name or ".unembed_out." in name:
            continue
        if stacked:  # mlx-lm stacks a layer's experts
            module = f"ffn_{module.split('_')[0]}_exps"
            tensors |= families.unstack_experts(layer.split(".")[-1], module, array)
        else:
            tensors[name] = array
    tensors |= latent
    if any(".conv1d." in name for name in tensors):
        tensors = _with_linear_attention_as_transformers(tensors)
    return lambda ids: log_softmax(np.array(model(mx.array([ids]))[0])), tensors


def _expand_latent_heads(model):
    """kv_b_proj of every layer with latent attention, by transformers' name."""
    import mlx.core as mx

    def expand(module):
        return np.array(mx.dequantize(module.weight, module.scales, module.biases,
                                      module.group_size, module.bits))

    tensors = {}
    for i, layer in enumerate(model.layers):
        attention = layer.self_attn
        if "embed_q" in attention:
            tensors[f"model.layers.{i}.self_attn.kv_b_proj.weight"] = families.join_latent_heads(
                expand(attention.embed_q), expand(attention.unembed_out))
    return tensors


def _with_linear_attention_as_transformers(tensors):
    """mlx-lm keeps the norms' weights without the 1 taken off, the convolution turned, and the text
    outside the model."""
    out = {}
    for name, array in tensors.items():
        if name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight"):
            array = array - np.float32(1)
        if name.endswith("conv1d.weight"):
            array = np.moveaxis(array, 2, 1)
        out[name.replace("language_model.model.", "model.language_model.", 1)
            .replace("language_model.lm_head.", "lm_head.", 1)] = array
    return out


def mlx_lm_folder(folder):
    """A checkpoint folder, weights widened to float32 -> callable(ids)."""
    import mlx.core as mx

    mx.set_default_device(mx.cpu)
    config = json.loads((Path(folder) / "config.json").read_text())
    module = config["model_type"]
    if module.startswith("qwen3_5"):  # reads rope_parameters
        module = module.removesuffix("_text")
    else:
        config = _classic_keys(config)
    architecture = importlib.import_module(f"mlx_lm.models.{module}")
    model = architecture.Model(architecture.ModelArgs.from_dict(config))
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
