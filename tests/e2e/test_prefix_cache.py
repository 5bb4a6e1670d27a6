"""What a client sees of prefixes that are shared between requests."""

import concurrent.futures

import httpx
import pytest
from conftest import Server

TEXT = "The lighthouse keeper wrote down the weather every evening. " * 20


def metric(server, name):
    for line in httpx.get(server.url + "/metrics").text.splitlines():
        if line.startswith(name + "{") or line.startswith(name + " "):
            return float(line.rsplit(" ", 1)[1])
    raise AssertionError(f"no metric {name}")


def complete(server, prompt, **fields):
    body = {"prompt": prompt, "max_tokens": 8, "temperature": 0, **fields}
    answer = httpx.post(server.url + "/v1/completions", json=body, timeout=300)
    assert answer.status_code == 200, answer.text
    return answer.json()


def cached(usage):
    return usage["prompt_tokens_details"]["cached_tokens"]


def test_completions_say_what_was_cached(server):
    first = complete(server, TEXT + "Once", cache_salt="completions")
    again = complete(server, TEXT + "Once", cache_salt="completions")
    longer = complete(server, TEXT + "Then it snowed", cache_salt="completions")
    other = complete(server, TEXT + "Once", cache_salt="completions, another")
    assert cached(first["usage"]) == 0
    tokens = again["usage"]["prompt_tokens"]
    assert tokens - 33 <= cached(again["usage"]) < tokens
    assert cached(longer["usage"]) > tokens - 64
    assert cached(other["usage"]) == 0
    assert first["choices"] == again["choices"] == other["choices"]


def chat(server, messages, salt, stream):
    """The text and the usage of one answer."""
    request = {
        "model": server.client().models.list().data[0].id,
        "messages": messages,
        "max_tokens": 8,
        "temperature": 0,
        "stream": stream,
        "extra_body": {"cache_salt": salt},
    }
    if not stream:
        answer = server.client().chat.completions.create(**request)
        return answer.choices[0].message.content, answer.usage
    text, usage = "", None
    chunks = server.client().chat.completions.create(
        **request, stream_options={"include_usage": True}
    )
    for chunk in chunks:
        text += "".join(choice.delta.content or "" for choice in chunk.choices)
        usage = chunk.usage or usage
    return text, usage


@pytest.mark.parametrize("stream", [False, True])
def test_chat_says_what_was_cached(server, stream):
    messages = [{"role": "user", "content": TEXT}]
    texts, counts = [], []
    for _ in range(2):
        text, usage = chat(server, messages, f"chat {stream}", stream)
        texts.append(text)
        counts.append(usage.prompt_tokens_details.cached_tokens)
        tokens = usage.prompt_tokens
    assert texts[0] == texts[1]
    assert counts[0] == 0
    assert tokens - 33 <= counts[1] < tokens


def test_a_burst_computes_its_common_beginning_once(server):
    queried = metric(server, "vllm:prefix_cache_queries_total")
    hit = metric(server, "vllm:prefix_cache_hits_total")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda i: complete(server, TEXT + str(i), cache_salt="burst"), range(8))
        )
    queried = metric(server, "vllm:prefix_cache_queries_total") - queried
    hit = metric(server, "vllm:prefix_cache_hits_total") - hit
    assert queried == sum(answer["usage"]["prompt_tokens"] for answer in answers)
    assert hit == sum(cached(answer["usage"]) for answer in answers)
    # One of them computed it, whoever came first.
    tokens = answers[0]["usage"]["prompt_tokens"]
    assert hit >= 7 * (tokens - 64)
    assert metric(server, "lockstep_kv_bytes_cached") > 0


def test_a_salt_is_a_string_with_something_in_it(server):
    for salt in ["", 7, "x" * 1025]:
        body = {"prompt": "a", "max_tokens": 1, "cache_salt": salt}
        answer = httpx.post(server.url + "/v1/completions", json=body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["param"] == "cache_salt"


def test_it_can_be_turned_off(tmp_path):
    server = Server(tmp_path / "log", "--context", "2048", "--no-prefix-cache")
    try:
        server.wait_until_healthy()
        answers = [complete(server, TEXT) for _ in range(2)]
        assert [cached(answer["usage"]) for answer in answers] == [0, 0]
        assert metric(server, "vllm:prefix_cache_queries_total") == 0
        assert metric(server, "lockstep_kv_bytes_cached") == 0
    finally:
        assert server.stop() == 0
