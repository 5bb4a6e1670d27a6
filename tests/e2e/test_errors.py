"""Every documented error, through openai-python's exception classes and as bytes."""

import json
import socket
import subprocess

import httpx
import openai
import pytest

import conftest
from support import user


def post(server, path, body):
    content = body if isinstance(body, (bytes, str)) else json.dumps(body)
    return httpx.post(server.url + path, content=content, timeout=120)


def assert_error(reply, status, param=None, code=None):
    assert reply.status_code == status, reply.text
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["message"]
    if param is not None:
        assert error["param"] == param
    if code is not None:
        assert error["code"] == code


def test_bad_request_class(client, model):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=user("x"), temperature=-1)
    assert caught.value.param == "temperature"


def test_not_found_class(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="no-such", messages=user("x"))
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such")


def test_case_58_model_names(client, server, model):
    reply = post(server, "/v1/chat/completions", {"model": "no-such", "messages": user("x")})
    assert_error(reply, 404, "model", "model_not_found")
    assert model in reply.json()["error"]["message"]
    assert client.models.retrieve(model).id == model


def test_connection_error_class():
    client = openai.OpenAI(
        base_url=f"http://127.0.0.1:{conftest.free_port()}/v1", api_key="x", max_retries=0)
    with pytest.raises(openai.APIConnectionError):
        client.models.list()


def test_timeout_class(server, model):
    with pytest.raises(openai.APITimeoutError):
        server.client().with_options(timeout=0.05).completions.create(
            model=model, prompt="word " * 1000, max_tokens=900, extra_body={"ignore_eos": True})


def test_case_10_11_context(client, model):
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as caught:
            client.completions.create(model=model, prompt="word " * 5000, stream=stream)
        assert caught.value.code == "context_length_exceeded"
        assert "2048" in caught.value.message


def test_case_11_at_the_edge(client, server, model):
    def ask(tokens, stream):
        body = {"prompt": [100] * tokens, "stream": stream, "ignore_eos": True}
        return post(server, "/v1/completions", body)

    for stream in (False, True):
        assert_error(ask(2048, stream), 400, "prompt", "context_length_exceeded")
        assert_error(ask(2049, stream), 400, "prompt", "context_length_exceeded")
    last = ask(2047, False).json()
    assert last["usage"]["completion_tokens"] == 1
    assert last["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("body,param", [
    ({"prompt": [-1]}, "prompt[0]"), ({"prompt": [1, 999999999]}, "prompt[1]"),
    ({"prompt": "a", "top_k": -2147483648}, "top_k"),
    ({"prompt": "a", "n_keep": 2147483647}, "n_keep"),
    ('{"prompt":"a","seed":1e30}', "seed"),
    ({"prompt": "a", "logit_bias": {"-1": 1, "9999999": 5, "abc": 1}}, "logit_bias"),
    ({"prompt": "a", "top_p": 1.5}, "top_p"), ({"prompt": "a", "min_p": 1.1}, "min_p"),
    ({"prompt": "a", "n": 0}, "n"),
    ({"prompt": "a", "max_tokens": "x", "stream": True}, "max_tokens"),
    ({"prompt": "a", "stream": "yes"}, "stream"),
    ({"prompt": "a", "temperature": "hot"}, "temperature"),
])
def test_case_34_35_53_56_bad_fields(server, body, param):
    assert_error(post(server, "/v1/completions", body), 400, param)
    assert httpx.get(server.url + "/health").status_code == 200


@pytest.mark.parametrize("body", [
    "{", "", "[]", '"x"', '{"messages":{}}', '{"messages":[],"messages":[]}', '{"temperature":NaN}',
    '{"messages":[{"role":"user","content":"\\ud800"}]}', b"\xef\xbb\xbf{}", b'{"a":"\xff"}',
    '{"tools":' + "[" * 3000 + "]" * 3000 + "}"])
def test_case_56_malformed_bodies(server, body):
    assert_error(post(server, "/v1/chat/completions", body), 400)


def test_case_57_huge_body(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
                    b"Content-Length: 3221225472\r\n\r\n0123456789")
        assert raw.recv(64).startswith(b"HTTP/1.1 413 ")


def test_case_57_large_legal_bodies(server):
    for size in (1 << 20, (64 << 20) - 100):
        padding = "x" * size
        reply = post(server, "/v1/completions", {"prompt": "a", "max_tokens": 1, "user": padding})
        assert reply.status_code == 200, reply.text
    assert_error(post(server, "/v1/completions", b"x" * ((64 << 20) + 1)), 413)


def test_case_65_port_taken(server):
    second = subprocess.run(
        [conftest.BINARY, "serve", "--model", conftest.MODEL, "--port", str(server.port)],
        capture_output=True, text=True, timeout=30)
    assert second.returncode != 0
    assert str(server.port) in second.stderr


def test_model_file_missing(tmp_path):
    missing = tmp_path / "no such.gguf"
    ended = subprocess.run(
        [conftest.BINARY, "serve", "--model", str(missing), "--port", str(conftest.free_port())],
        capture_output=True, text=True, timeout=30)
    assert ended.returncode != 0
    assert "no such.gguf" in ended.stderr


@pytest.mark.parametrize("body", [
    '{"prompt":"a","max_tokens":' + "1" * 1000000 + "}",
    json.dumps({"prompt": "a", "model": "m" * 5000000}),
    '{"prompt":"a",' + ",".join(['"' + "k" * 1000000 + '":1'] * 2) + "}",
    json.dumps({"prompt": "a", "logit_bias": {"x" * 1000000: 1}}),
    json.dumps({"prompt": "a", "response_format": {"type": "t" * 1000000}}),
    json.dumps({"prompt": ["a", 1] * 10})])
def test_an_error_does_not_repeat_the_body(server, body):
    reply = post(server, "/v1/completions", body)
    assert reply.status_code in (400, 404)
    assert len(reply.content) < 1000, reply.text


def test_roles_and_parts_are_repeated_in_part(server):
    for message in ({"role": "r" * 1000000, "content": "a"},
                    {"role": "user", "content": [{"type": "t" * 1000000}]}):
        reply = post(server, "/v1/chat/completions", {"messages": [message]})
        assert reply.status_code == 400 and len(reply.content) < 1000


def test_when_no_token_is_left_the_field_is_named(server):
    reply = post(server, "/v1/completions", {
        "prompt": "a", "stop_token_ids": list(range(49152)), "min_tokens": 1, "max_tokens": 3})
    assert_error(reply, 400, "stop_token_ids")
