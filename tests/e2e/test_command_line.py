"""What the program says to wrong flags, files and settings."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tomllib

import httpx
import pytest

import conftest

TINY = conftest.ROOT / "tests" / "conformance" / "checkpoints" / "tiny-llama-bf16"


def run(*args, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("LOCKSTEP_")}
    return subprocess.run(
        [conftest.BINARY, *map(str, args)], capture_output=True, text=True, timeout=60,
        env=clean | environment)


def test_print_config_shows_values_and_sources(tmp_path):
    file = tmp_path / "serve.toml"
    file.write_text('context = 512\nport = 1\nmax-rows = 3\nalias = ["a", "b"]\n')
    shown = run(
        "serve", "--model", "m.gguf", "--config", file, "--max-rows", 5, "--print-config",
        LOCKSTEP_PORT="2", LOCKSTEP_ANY_MODEL_NAME="true")
    assert shown.returncode == 0, shown.stderr
    values = tomllib.loads(shown.stdout)
    assert values["model"] == "m.gguf" and values["max-rows"] == 5
    assert values["port"] == 2 and values["any-model-name"] is True
    assert values["context"] == 512 and values["alias"] == ["a", "b"]
    assert values["host"] == "127.0.0.1"
    sources = {
        line.split(" = ")[0].strip("# "): line.rsplit("# ", 1)[1]
        for line in shown.stdout.splitlines()}
    assert sources["max-rows"] == "flag --max-rows"
    assert sources["port"] == "environment LOCKSTEP_PORT"
    assert sources["context"] == f"file {file}"
    assert sources["host"] == sources["kv"] == "default"
    # Reads back as a file, and is then all from there.
    again = tmp_path / "again.toml"
    again.write_text(shown.stdout)
    assert tomllib.loads(run("serve", "--config", again, "--print-config").stdout) == values


def test_a_config_file_alone_serves_nothing_without_a_model(tmp_path):
    ended = run("serve", "--port", 0)
    assert ended.returncode == 2 and "--model" in ended.stderr


@pytest.mark.parametrize("args,near", [
    (["serve", "--prot", "80"], "--port"), (["serve", "--model", "m", "--max-row=3"], "--max-rows"),
    (["generate", "m", "x", "--temprature", "1"], "--temperature"), (["srve"], "serve")])
def test_unknown_words_name_the_nearest(args, near):
    ended = run(*args)
    assert ended.returncode == 2
    assert f"Did you mean {near}?" in ended.stderr


def test_an_unknown_key_of_the_file(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("contxt = 5\n")
    ended = run("serve", "--model", "m", "--config", file)
    assert ended.returncode == 2
    assert "contxt" in ended.stderr and "did you mean context?" in ended.stderr


@pytest.mark.parametrize("flag,value", [
    ("--temperature", "nan"), ("--top-p", "nan"), ("--min-p", "NaN"),
    ("--repetition-penalty", "nan"), ("--repetition-penalty", "1e-38"), ("--kv-gib", "nan"),
    ("--seed", "18446744073709551616"), ("--seed", "1e30"), ("--max-tokens", "99999999999")])
def test_numbers_that_are_out_of_range(flag, value):
    ended = run("generate", conftest.MODEL, "x", flag, value)
    assert ended.returncode == 2
    assert flag in ended.stderr


def test_a_context_of_no_tokens(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(TINY, folder)
    config = json.loads((folder / "config.json").read_text())
    config["max_position_embeddings"] = 0
    (folder / "config.json").write_text(json.dumps(config))
    ended = run("generate", folder, "x")
    assert ended.returncode != 0
    assert "max_position_embeddings is 0; expected at least 1" in ended.stderr


def test_a_lone_safetensors_file():
    ended = run("generate", TINY / "model.safetensors", "x")
    assert ended.returncode != 0
    assert "model.safetensors: a lone .safetensors file" in ended.stderr
    assert "tokenizer.json" in ended.stderr and "config.json" in ended.stderr


def test_case_66_paths(tmp_path):
    """Spaces, other scripts, a link and a trailing slash."""
    folder = tmp_path / "モデル dir"
    shutil.copytree(TINY, folder / "é m")
    link = tmp_path / "link"
    link.symlink_to(folder / "é m")
    answers = [
        run("generate", path, "x", "--temperature", 0, "-n", 3)
        for path in (TINY, folder / "é m", f"{folder / 'é m'}/", link)]
    assert all(answer.returncode == 0 for answer in answers), answers
    assert len({answer.stdout for answer in answers}) == 1


def spoiled(tmp_path, **config):
    """A copy of the tiny checkpoint; `config` goes into its tokenizer_config.json."""
    folder = tmp_path / "model"
    shutil.copytree(TINY, folder)
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | config))
    return folder


def without_numbers(folder):
    """Every weight becomes NaN."""
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    begin = 8 + int.from_bytes(whole[:8], "little")
    file.write_bytes(whole[:begin] + b"\xc0\x7f" * ((len(whole) - begin) // 2))
    return folder


def test_logits_that_are_no_numbers_are_no_answer(tmp_path):
    folder = without_numbers(spoiled(tmp_path))
    for flags in ((), ("--json",), ("--top", 0), ("--top", 0, "--json")):
        ended = run("score", folder, "--tokens", "1,2,3", *flags)
        assert ended.returncode == 1 and ended.stdout == "", ended.stdout
        assert "logits are not finite" in ended.stderr
    server = conftest.Server(tmp_path / "log", model=folder)
    try:
        server.wait_until_healthy()
        for logprobs in (0, 2):
            for max_tokens in (0, 1):
                reply = httpx.post(server.url + "/v1/completions", timeout=60, json={
                    "prompt": "ab", "echo": True, "max_tokens": max_tokens, "logprobs": logprobs})
                assert reply.status_code == 500, reply.text
                assert "logits are not finite" in reply.json()["error"]["message"]
    finally:
        assert server.stop() == 0


def test_case_44_what_a_template_uses_and_is_not_there_is_said_once(tmp_path):
    source = "{{ bos_token }}\n{% for m in messages %}\n{{ m.content|no_such_filter }}{% endfor %}"
    server = conftest.Server(
        tmp_path / "log", model=spoiled(tmp_path, chat_template=source))
    try:
        server.wait_until_healthy()
        said = [line for line in server.log().splitlines() if "no_such_filter" in line]
        assert len(said) == 1 and "warning" in said[0] and "line 3" in said[0], said
        for _ in range(2):
            reply = httpx.post(server.url + "/v1/chat/completions", timeout=60, json={
                "messages": [{"role": "user", "content": "a"}], "max_tokens": 1})
            error = reply.json()["error"]
            assert reply.status_code == 400 and error["param"] is None
            assert "no_such_filter" in error["message"] and "line 3" in error["message"]
        assert server.log().count("no_such_filter") == 1
        reply = httpx.post(server.url + "/v1/completions", timeout=60, json={
            "prompt": "a", "max_tokens": 1})
        assert reply.status_code == 200
    finally:
        assert server.stop() == 0


def test_a_template_that_raises_is_no_fault_of_the_model(tmp_path):
    raises = "{{ raise_exception('no conversation is good enough') }}"
    ended = run("generate", spoiled(tmp_path, chat_template=raises), "x", "-n", 1)
    assert ended.returncode == 0 and "template" not in ended.stderr, ended.stderr


def test_one_answer_gets_the_cache_of_one_row():
    ended = run("generate", conftest.MODEL, "x", "-n", 1, "--context", 1024)
    assert ended.returncode == 0, ended.stderr
    cache = re.search(r"(\d+) MiB of KV cache", ended.stderr)
    # Keys and values of 30 layers with 3 heads of 64 elements of 2 bytes each.
    assert int(cache[1]) == 1024 * 30 * 2 * 3 * 64 * 2 >> 20


def test_token_lists_of_score(tmp_path):
    ended = run("score", TINY, "--tokens-file", tmp_path)
    assert ended.returncode == 2
    assert f"{tmp_path} is a folder, not a file of token ids" in ended.stderr
    ended = run("score", TINY, "--tokens", "1,,2")
    assert ended.returncode == 2 and "--tokens: a token id expected at byte 2" in ended.stderr
    alone = json.loads(run("score", TINY, "--tokens", "1", "--json").stdout)
    assert alone["nll"] is None and len(alone["top"]) == 1
    assert "likelihood" not in run("score", TINY, "--tokens", "1").stdout


def test_a_name_of_no_characters(tmp_path):
    ended = run("serve", "--model", TINY, "--alias", "", "--port", 0)
    assert ended.returncode == 2 and "--alias" in ended.stderr
    file = tmp_path / "serve.toml"
    file.write_text('alias = ["a", ""]\n')
    ended = run("serve", "--model", TINY, "--config", file, "--port", 0)
    assert ended.returncode == 2 and "alias" in ended.stderr


def test_a_signal_while_the_model_loads(tmp_path):
    server = conftest.Server(tmp_path / "log")
    try:
        while True:
            try:
                httpx.get(server.url + "/health")
                break
            except httpx.TransportError:
                assert server.process.poll() is None, server.log()
        server.process.terminate()
        assert server.process.wait(conftest.STOP_SECONDS) == 0, server.log()
        # The second, should the model have been faster than the signal.
        assert "while the model was loading" in server.log() or "ending: " in server.log()
    finally:
        server.process.kill()


def test_verify_shows_the_same_bytes():
    shown = run("verify", TINY, "--requests", 6, "--threads", 2)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[-1] == "every answer has the same bytes"
    assert len([line for line in lines if line.endswith("the same bytes")]) == 12
    assert "DIFFERENT" not in shown.stdout
