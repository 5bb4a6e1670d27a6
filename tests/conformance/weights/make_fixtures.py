#!/usr/bin/env python3
"""Writes the fixtures of this folder with the reference packages `gguf` and `safetensors`.

    pip install -r ../../requirements.txt && python3 make_fixtures.py

expected.json holds what the reference readers find in each file; weights_conformance_test compares
lockstep's readers with it. The output is the same on every run.
"""

import json
import pathlib
import shutil

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, quants
from safetensors import deserialize
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).parent
RNG = np.random.default_rng(7)


def gguf_metadata(writer):
    T = GGUFValueType
    writer.add_uint8("t.u8", 255)
    writer.add_int8("t.i8", -128)
    writer.add_uint16("t.u16", 65535)
    writer.add_int16("t.i16", -32768)
    writer.add_uint32("t.u32", 4294967295)
    writer.add_int32("t.i32", -2147483648)
    writer.add_float32("t.f32", 1e-05)
    writer.add_bool("t.true", True)
    writer.add_bool("t.false", False)
    writer.add_string("t.string", "a string: é 語 🦜")
    writer.add_string("t.empty", "")
    writer.add_uint64("t.u64", 2**64 - 1)
    writer.add_int64("t.i64", -(2**63))
    writer.add_float64("t.f64", 0.1)
    writer.add_array("t.strings", ["a", "", "語", "a"])
    writer.add_key_value("t.raw_strings", [b"\xff\xfe", b"\x00", b"ok"], T.ARRAY)
    writer.add_key_value("t.i32s", [1, -2, 3], T.ARRAY)
    writer.add_key_value("t.f32s", [0.5, -1.25], T.ARRAY)
    writer.add_key_value("t.bools", [True, False, True], T.ARRAY)
    writer.add_key_value("t.u8s", [1, 2, 255], T.ARRAY, sub_type=T.UINT8)


def gguf_tensors(writer):
    Q = GGMLQuantizationType
    for dtype in (np.float32, np.float16, np.float64, np.int8, np.int16, np.int32, np.int64):
        name = f"plain.{np.dtype(dtype).name}"
        writer.add_tensor(name, (RNG.standard_normal((3, 5)) * 10).astype(dtype))
    for qtype in (Q.BF16, Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0, Q.MXFP4):
        data = quants.quantize(RNG.standard_normal((2, 64)).astype(np.float32), qtype)
        writer.add_tensor(f"block.{qtype.name.lower()}", data, raw_dtype=qtype)
    # Not every type can be quantised in Python; the layout is all that counts here.
    for qtype, size in ((Q.Q2_K, 84), (Q.Q3_K, 110), (Q.Q4_K, 144), (Q.Q5_K, 176), (Q.Q6_K, 210),
                        (Q.IQ1_S, 50), (Q.IQ1_M, 56), (Q.IQ2_XXS, 66), (Q.IQ2_XS, 74),
                        (Q.IQ2_S, 82), (Q.IQ3_XXS, 98), (Q.IQ3_S, 110), (Q.IQ4_XS, 136),
                        (Q.TQ1_0, 54), (Q.TQ2_0, 66)):
        data = RNG.integers(0, 256, (1, size), dtype=np.uint8)
        writer.add_tensor(f"block.{qtype.name.lower()}", data, raw_dtype=qtype)
    writer.add_tensor("dims.1", np.arange(4, dtype=np.float32))
    writer.add_tensor("dims.4", np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4))
    writer.add_tensor("n" * 64, np.ones(1, dtype=np.float32))


def text(value):
    """Bytes as JSON can hold them: Latin-1, one character a byte."""
    return bytes(value).decode("latin-1")


def read_gguf(path):
    reader = GGUFReader(path)
    metadata = {}
    for key, field in reader.fields.items():
        if key.startswith("GGUF."):
            continue
        kind = field.types[0].name
        if kind == "STRING":
            value = text(field.parts[field.data[0]])
        elif kind == "ARRAY":
            kind = "ARRAY " + field.types[-1].name
            parts = [field.parts[i] for i in field.data]
            strings = field.types[-1] == GGUFValueType.STRING
            value = [text(p) if strings else p.tolist()[0] for p in parts]
        else:
            value = field.parts[field.data[0]].tolist()[0]
        # 64-bit integers and floats as text, exact.
        if kind in ("UINT64", "INT64"):
            value = str(value)
        metadata[key] = {"type": kind, "value": value}
    tensors = [{
        "name": t.name,
        "dtype": t.tensor_type.name,
        "shape": [int(d) for d in reversed(t.shape)],
        "hex": t.data.tobytes().hex(),
    } for t in reader.tensors]
    return {"metadata": metadata, "tensors": tensors}


def read_safetensors(path):
    tensors = []
    for name, info in deserialize(path.read_bytes()):
        tensors.append({"name": name, "dtype": info["dtype"], "shape": info["shape"],
                        "hex": bytes(info["data"]).hex()})
    return {"tensors": sorted(tensors, key=lambda t: t["name"])}


def main():
    for old in list(HERE.glob("*.gguf")) + list(HERE.glob("*.safetensors")):
        old.unlink()
    writer = GGUFWriter(HERE / "types.gguf", "llama")
    gguf_metadata(writer)
    gguf_tensors(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    writer = GGUFWriter(HERE / "aligned.gguf", "llama")
    writer.add_custom_alignment(256)
    writer.add_tensor("a", np.arange(3, dtype=np.float32))
    writer.add_tensor("b", np.arange(5, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    writer = GGUFWriter(HERE / "split.gguf", "llama", split_max_tensors=2)
    writer.add_uint32("t.u32", 7)
    for i in range(5):
        writer.add_tensor(f"t{i}", np.full((2, 3), i, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    dtypes = ("bool", "uint8", "int8", "uint16", "int16", "float16", "uint32", "int32", "float32",
              "uint64", "int64", "float64", "complex64")
    tensors = {d: (RNG.standard_normal((2, 3)) * 50).astype(d) for d in dtypes}
    tensors["scalar"] = np.array(3.5, dtype=np.float32)
    tensors["empty"] = np.zeros((0, 4), dtype=np.float32)
    save_file(tensors, HERE / "types.safetensors", metadata={"format": "np", "note": "é"})

    folder = HERE / "hf folder"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shards = {"model-00001-of-00002.safetensors": ["embed", "layers.0.w"],
              "model-00002-of-00002.safetensors": ["layers.1.w", "norm"]}
    weight_map = {}
    for shard, names in shards.items():
        save_file({n: RNG.standard_normal((2, 2)).astype(np.float32) for n in names},
                  folder / shard, metadata={"format": "pt"})
        weight_map.update({n: shard for n in names})
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 64}, "weight_map": weight_map}, indent=2) + "\n")
    (folder / "config.json").write_text(json.dumps(
        {"architectures": ["LlamaForCausalLM"], "hidden_size": 2, "rms_norm_eps": 1e-05,
         "rope_theta": 10000, "tie_word_embeddings": False, "eos_token_id": 2,
         "time_step_limit": [0.0, float("inf")], "pad_token_id": None}, indent=2) + "\n")
    (folder / "generation_config.json").write_text(
        json.dumps({"eos_token_id": [5, 2]}, indent=2) + "\n")

    for path in HERE.rglob("*.safetensors"):
        path.chmod(0o644)
    expected = {}
    for path in sorted(HERE.glob("*.gguf")):
        expected[path.name] = read_gguf(path)
    for path in sorted(HERE.rglob("*.safetensors")):
        expected[path.relative_to(HERE).as_posix()] = read_safetensors(path)
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
