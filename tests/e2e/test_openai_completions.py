"""openai-python against POST /v1/completions."""

import math

import httpx
import pytest

from support import joined


def complete(client, model, prompt, **fields):
    return client.completions.create(model=model, prompt=prompt, **fields)


def test_case_04_stop_over_tokens(client, model):
    prompt = "Here is the English alphabet: A B C D E F G H I J K L M N O P Q R S T"
    free = complete(client, model, prompt, temperature=0, max_tokens=24).choices[0].text
    assert len(free) > 8
    stop = free[3:8]
    cut = free[: free.index(stop)]
    fields = dict(temperature=0, max_tokens=24, stop=[stop])
    whole = complete(client, model, prompt, **fields)
    assert (whole.choices[0].text, whole.choices[0].finish_reason) == (cut, "stop")
    assert joined(complete(client, model, prompt, stream=True, **fields)) == (cut, ["stop"])


def test_case_06_null_and_empty_stops(client, server, model):
    texts = set()
    for stop in (None, [], "", [""]):
        body = {"model": model, "prompt": "1 2 3", "temperature": 0, "max_tokens": 8, "stop": stop}
        reply = httpx.post(server.url + "/v1/completions", json=body, timeout=300)
        assert reply.status_code == 200, reply.text
        texts.add(reply.json()["choices"][0]["text"])
    assert len(texts) == 1 and texts.pop()


def test_case_03_lone_byte(client, server, model):
    # A token that is a part of a character.
    with httpx.Client(base_url=server.url) as session:

        def text_of(token):
            return session.post("/detokenize", json={"tokens": [token]}).json()["prompt"]

        partial = next(token for token in range(400) if "\ufffd" in text_of(token))
    fields = dict(max_tokens=4, temperature=0, logit_bias={str(partial): 100}, logprobs=1)
    whole = complete(client, model, "a", **fields)
    assert "\ufffd" in whole.choices[0].text
    text, _ = joined(complete(client, model, "a", stream=True, **fields))
    assert text == whole.choices[0].text


def test_case_09_empty_prompts(client, server, model):
    for body in ({"prompt": ""}, {"prompt": [""]}, {"prompt": []}, {"messages": []}):
        path = "/v1/chat/completions" if "messages" in body else "/v1/completions"
        reply = httpx.post(server.url + path, json={**body, "max_tokens": 4}, timeout=60)
        assert reply.status_code in (200, 400), reply.text
    assert complete(client, model, "a", max_tokens=1).usage.completion_tokens == 1


def test_case_17_batch_changes_nothing(client, model):
    prompts = [
        "Once", "The dog", "In 1969 the first", "a b c d e f g " * 20, "def f(x):\n    return"]
    fields = dict(temperature=0, max_tokens=24)
    together = complete(client, model, prompts, **fields)
    assert [choice.index for choice in together.choices] == list(range(len(prompts)))
    alone = [complete(client, model, prompt, **fields) for prompt in prompts]
    assert [c.text for c in together.choices] == [a.choices[0].text for a in alone]
    assert together.usage.prompt_tokens == sum(a.usage.prompt_tokens for a in alone)


def test_case_22_echo(client, model):
    prompt = "\n1. Carol has 20"
    fields = dict(max_tokens=5, temperature=0, logprobs=1, echo=True)
    choice = complete(client, model, prompt, **fields).choices[0]
    assert choice.text.startswith(prompt)
    logprobs = choice.logprobs
    assert "".join(logprobs.tokens) == choice.text
    assert logprobs.token_logprobs[0] is None and logprobs.top_logprobs[0] is None
    assert all(value <= 0 for value in logprobs.token_logprobs[1:])
    offset = 0
    for token, start in zip(logprobs.tokens, logprobs.text_offset, strict=True):
        assert start == offset
        offset += len(token)
    assert joined(complete(client, model, prompt, stream=True, **fields))[0] == choice.text


def test_echo_scores_what_was_generated(client, model):
    prompt = "The capital of France is"
    # Two tokens: what comes after them is split differently when it is text.
    answer = complete(client, model, prompt, max_tokens=2, temperature=0, logprobs=2)
    assert answer.choices[0].text.startswith(" Paris")
    text = prompt + answer.choices[0].text
    scored = complete(client, model, text, max_tokens=0, logprobs=2, echo=True).choices[0]
    assert scored.text == text
    assert scored.logprobs.token_logprobs[-2:] == answer.choices[0].logprobs.token_logprobs
    assert scored.logprobs.tokens[-2:] == answer.choices[0].logprobs.tokens


def test_case_19_legacy_logprobs(client, model):
    answer = complete(client, model, "something", logprobs=1, max_tokens=1, temperature=0)
    choice = answer.choices[0]
    assert choice.logprobs.tokens == [choice.text]
    assert len(choice.logprobs.top_logprobs[0]) == 1
    assert math.exp(choice.logprobs.token_logprobs[0]) <= 1


def test_token_prompts(client, server, model):
    tokens = httpx.post(server.url + "/tokenize", json={"prompt": "The dog"}).json()["tokens"]
    by_text = complete(client, model, "The dog", temperature=0, max_tokens=8)
    by_ids = complete(client, model, tokens, temperature=0, max_tokens=8)
    assert by_ids.choices[0].text == by_text.choices[0].text
    both = complete(client, model, [tokens, tokens], temperature=0, max_tokens=8)
    assert [c.text for c in both.choices] == [by_text.choices[0].text] * 2


def test_best_of(client, model):
    fields = dict(seed=5, max_tokens=8, logprobs=0)
    best = complete(client, model, "Once upon", best_of=4, n=1, **fields)
    four = complete(client, model, "Once upon", n=4, **fields)

    def mean(choice):
        values = choice.logprobs.token_logprobs
        return sum(values) / len(values)

    assert best.choices[0].text == max(four.choices, key=mean).text
    assert best.usage.completion_tokens == four.usage.completion_tokens


@pytest.mark.parametrize("fields", [
    {"temperature": 0}, {"temperature": 1e-4}, {"temperature": 1e-30}, {"top_p": 0},
    {"top_p": 1e-9}, {"extra_body": {"top_k": 1}}, {"extra_body": {"min_p": 1}}])
def test_case_35_degenerate_settings_are_greedy(client, model, fields):
    greedy = complete(client, model, "The dog", temperature=0, max_tokens=8).choices[0].text
    assert complete(client, model, "The dog", max_tokens=8, **fields).choices[0].text == greedy
    assert greedy


@pytest.mark.parametrize("extra", [{"top_k": 0}, {"top_k": -1}, {"top_k": 10**6}, {"min_p": 0}])
def test_case_35_off_is_off(client, model, extra):
    plain = complete(client, model, "The dog", seed=3, max_tokens=8)
    same = complete(client, model, "The dog", seed=3, max_tokens=8, extra_body=extra)
    assert same.choices[0].text == plain.choices[0].text


def test_case_36_penalties(client, model):
    fields = dict(temperature=0, max_tokens=40)
    plain = complete(client, model, "The dog", **fields).choices[0].text
    penalised = complete(client, model, "The dog", extra_body={"repetition_penalty": 1.5}, **fields)
    assert penalised.choices[0].text != plain
    # Over the output only: a prompt full of one word does not ban it.
    prompt = "dog " * 40
    free = complete(client, model, prompt, temperature=0, max_tokens=1).choices[0].text
    cold = complete(client, model, prompt, temperature=0, max_tokens=1, presence_penalty=2)
    warm = complete(client, model, prompt, temperature=0, max_tokens=1, presence_penalty=2)
    assert cold.choices[0].text == warm.choices[0].text == free
