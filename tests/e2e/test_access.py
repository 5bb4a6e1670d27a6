"""Keys as the clients of both APIs send them."""

import os
import subprocess

import anthropic
import httpx
import openai
import pytest

import conftest
from support import user

TINY = conftest.ROOT / "tests" / "conformance" / "checkpoints" / "tiny-llama-bf16"


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("access")
    (folder / "keys").write_text("# of the team\nkey-of-the-file\n")
    running = conftest.Server(
        folder / "log", "--api-key", "first-key", "--api-key-file", str(folder / "keys"),
        "--context", "1024")
    try:
        running.wait_until_healthy()
        yield running
    finally:
        assert running.stop() == 0
    # A key that was sent or set is in no line of the log.
    assert "key-of-the-file" not in running.log() and "first-key" not in running.log()
    assert "wrong-key" not in running.log()


def openai_client(server, key):
    return openai.OpenAI(base_url=server.url + "/v1", api_key=key, max_retries=0, timeout=60)


def anthropic_client(server, **key):
    return anthropic.Anthropic(base_url=server.url, max_retries=0, timeout=60, **key)


@pytest.mark.parametrize("key", ["first-key", "key-of-the-file"])
def test_the_right_key(locked, key):
    client = openai_client(locked, key)
    model = client.models.list().data[0].id
    answer = client.completions.create(model=model, prompt="a", max_tokens=1)
    assert answer.usage.completion_tokens == 1
    for way in ({"api_key": key}, {"auth_token": key}):
        message = anthropic_client(locked, **way).messages.create(
            model=model, messages=user("Hi"), max_tokens=1)
        assert message.usage.output_tokens == 1


def test_the_wrong_key(locked):
    with pytest.raises(openai.AuthenticationError) as refused:
        openai_client(locked, "wrong-key").models.list()
    assert refused.value.code == "invalid_api_key"
    with pytest.raises(anthropic.AuthenticationError) as refused:
        anthropic_client(locked, api_key="wrong-key").messages.create(
            model="m", messages=user("Hi"), max_tokens=1)
    assert refused.value.body["error"]["type"] == "authentication_error"
    assert httpx.get(locked.url + "/health").status_code == 200


def test_a_key_is_not_shown():
    clean = {k: v for k, v in os.environ.items() if not k.startswith("LOCKSTEP_")}
    shown = subprocess.run(
        [conftest.BINARY, "serve", "--model", "m", "--print-config"], capture_output=True,
        text=True, env=clean | {"LOCKSTEP_API_KEY": "secret-1,secret-2"}, timeout=60)
    assert shown.returncode == 0 and "secret" not in shown.stdout
    line = next(line for line in shown.stdout.splitlines() if "api-key =" in line)
    assert line.startswith("# api-key = (not shown)")
    assert line.endswith("# environment LOCKSTEP_API_KEY")


@pytest.mark.parametrize("flags", [
    ("--api-key", "two words"), ("--api-key", ""), ("--api-key-file", "/nowhere/keys")])
def test_keys_that_are_none(flags):
    ended = subprocess.run(
        [conftest.BINARY, "serve", "--model", str(TINY), "--port", "0", *flags],
        capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert "api-key" in ended.stderr and "two words" not in ended.stderr
