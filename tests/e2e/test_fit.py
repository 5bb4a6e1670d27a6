"""What `fit` says of memory, against what a server then takes."""

import json
import pathlib
import subprocess

import httpx
import pytest

import conftest
from support import metric, metrics

TINY = conftest.ROOT / "tests" / "conformance" / "checkpoints" / "tiny-llama-bf16"


def fit(*args):
    return subprocess.run(
        [conftest.BINARY, "fit", *map(str, args)], capture_output=True, text=True, timeout=60)


def numbers(*args):
    said = fit(*args, "--json")
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


def anonymous_memory(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")


def test_a_full_server_takes_what_fit_says(tmp_path):
    flags = ("--context", "1024", "--max-rows", "4", "--kv-gib", "0.1")
    said = numbers(conftest.MODEL, *flags)
    server = conftest.Server(tmp_path / "log", *flags)
    try:
        server.wait_until_healthy()
        number = 0
        # Prompts that have nothing in common, until blocks of the cache have to go.
        while metric(metrics(httpx.get(server.url + "/metrics").text),
                     "lockstep_prefix_cache_evictions_total") == 0:
            number += 1
            prompt = [(number * 7919 + i * 104729) % 40000 for i in range(1000)]
            answer = httpx.post(server.url + "/v1/completions", timeout=300,
                                json={"prompt": prompt, "max_tokens": 1})
            assert answer.status_code == 200, answer.text
            assert number < 50
        taken = anonymous_memory(server.process.pid)
    finally:
        server.stop()
    assert said["together"] == pytest.approx(taken, rel=0.03)


def test_the_numbers_agree_with_each_other():
    said = numbers(conftest.MODEL, "--context", 2048, "--max-rows", 4)
    # 30 layers, keys and values of 3 heads of 64 in bf16.
    assert said["kv_token"] == 30 * 2 * 3 * 64 * 2
    assert said["kv_row"] == 2048 * said["kv_token"]
    assert said["kv"] <= 4 * said["kv_row"] and said["context"] == 2048
    assert (said["longest_row"], said["rows"]) == (2048, 4)
    assert said["together"] == sum(said[k] for k in ("weights", "activations", "program", "kv"))
    q8 = numbers(conftest.MODEL, "--context", 2048, "--max-rows", 4, "--kv", "q8")
    # A byte an element, and four more a group of 32.
    assert q8["kv_token"] == said["kv_token"] * (1 + 4 / 32) / 2


def test_a_small_cache_holds_fewer_and_shorter_rows():
    said = numbers(conftest.MODEL, "--context", 8192, "--max-rows", 16, "--kv-gib", 0.05)
    assert said["kv"] == int(0.05 * 2**30)
    assert 0 < said["longest_row"] < 8192
    assert said["rows"] * said["longest_row"] * said["kv_token"] <= said["kv"]


@pytest.mark.parametrize("command", [("fit",), ("serve", "--port", "0", "--model"), ("score",)])
def test_a_cache_that_does_not_fit_is_refused(command):
    text = ("--text", "x") if command[0] == "score" else ()
    ended = subprocess.run(
        [conftest.BINARY, *command, str(TINY), "--kv-gib", "900000", *text],
        capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "kv-gib" in ended.stderr and "are free" in ended.stderr


def test_the_table():
    said = fit(TINY)
    assert said.returncode == 0, said.stderr
    first = [line.split("  ")[0] for line in said.stdout.splitlines()]
    assert first == ["weights", "activations", "program", "KV cache", "together", "a token",
                     "a row", "longest row", "rows"]
