"""What a client sees of prefixes that are shared between requests."""

import concurrent.futures

import httpx
import pytest

import conftest
from support import joined, metric, metrics, user

TEXT = "The lighthouse keeper wrote down the weather every evening. " * 20
BLOCK = 32


def complete(url, prompt, **fields):
    body = {"prompt": prompt, "max_tokens": 8, "temperature": 0, **fields}
    answer = httpx.post(url + "/v1/completions", json=body, timeout=300)
    assert answer.status_code == 200, answer.text
    return answer.json()


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def counters(url):
    return metrics(httpx.get(url + "/metrics").text)


def test_completions_say_what_was_cached(server):
    first = complete(server.url, TEXT + "Once", cache_salt="completions")
    again = complete(server.url, TEXT + "Once", cache_salt="completions")
    longer = complete(server.url, TEXT + "Then it snowed", cache_salt="completions")
    other = complete(server.url, TEXT + "Once", cache_salt="completions of another")
    tokens = first["usage"]["prompt_tokens"]
    assert cached(first) == cached(other) == 0
    assert cached(again) == (tokens - 1) // BLOCK * BLOCK
    assert cached(longer) >= (tokens - 2) // BLOCK * BLOCK
    assert first["choices"] == again["choices"] == other["choices"]


@pytest.mark.parametrize("stream", [False, True])
def test_chat_says_what_was_cached(client, model, stream):
    texts, counts = [], []
    for _ in range(2):
        answer = client.chat.completions.create(
            model=model,
            messages=user(TEXT),
            max_tokens=8,
            temperature=0,
            stream=stream,
            stream_options={"include_usage": True} if stream else None,
            extra_body={"cache_salt": f"chat {stream}"},
        )
        if stream:
            chunks = list(answer)
            texts.append(joined(chunks)[0])
            usage = chunks[-1].usage
        else:
            texts.append(answer.choices[0].message.content)
            usage = answer.usage
        counts.append(usage.prompt_tokens_details.cached_tokens)
    assert texts[0] == texts[1]
    assert counts == [0, (usage.prompt_tokens - 1) // BLOCK * BLOCK]


def test_a_burst_computes_its_common_beginning_once(server):
    before = counters(server.url)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda i: complete(server.url, TEXT + str(i), cache_salt="burst"), range(8))
        )
    after = counters(server.url)
    grown = {
        name: metric(after, name) - metric(before, name)
        for name in ["vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"]
    }
    queried = sum(answer["usage"]["prompt_tokens"] for answer in answers)
    assert grown["vllm:prefix_cache_queries_total"] == queried
    assert grown["vllm:prefix_cache_hits_total"] == sum(map(cached, answers))
    # One of them computed it, whichever came first; the others what is no whole block.
    assert sum(cached(answer) == 0 for answer in answers) == 1
    assert sum(map(cached, answers)) >= 7 * (queried // 8 - 2 * BLOCK)
    assert metric(after, "lockstep_kv_bytes_cached") > 0


def test_a_salt_is_a_string_with_something_in_it(server):
    for salt in ["", 7, "x" * 1025]:
        body = {"prompt": "a", "max_tokens": 1, "cache_salt": salt}
        answer = httpx.post(server.url + "/v1/completions", json=body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["param"] == "cache_salt"


def test_it_can_be_turned_off(tmp_path):
    server = conftest.Server(tmp_path / "log", "--context", "2048", "--no-prefix-cache")
    try:
        server.wait_until_healthy()
        assert [cached(complete(server.url, TEXT)) for _ in range(2)] == [0, 0]
        values = counters(server.url)
        assert metric(values, "vllm:prefix_cache_queries_total") == 0
        assert metric(values, "lockstep_kv_bytes_cached") == 0
    finally:
        assert server.stop() == 0
