"""openai-python against POST /v1/chat/completions."""

import math

import pytest

from support import joined, user


def ask(client, model, text, **fields):
    return client.chat.completions.create(model=model, messages=user(text), **fields)


def test_answer(client, model):
    answer = ask(client, model, "What is the capital of France?", temperature=0, max_tokens=32)
    assert answer.choices[0].message.content.strip()
    assert answer.choices[0].message.role == "assistant"
    assert answer.object == "chat.completion"
    assert answer.model == model
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.system_fingerprint


@pytest.mark.parametrize("temperature", [0, 1.0])
def test_case_01_stream_equals_whole(client, model, temperature):
    fields = dict(temperature=temperature, seed=7, max_tokens=64)
    whole = ask(client, model, "Repeat exactly: 😀🦙漢字", **fields)
    chunks = list(ask(client, model, "Repeat exactly: 😀🦙漢字", stream=True, **fields))
    text, reasons = joined(chunks)
    assert text == whole.choices[0].message.content
    assert reasons == [whole.choices[0].finish_reason]


def test_case_07_the_answer_ends_at_the_turn(client, model):
    answer = ask(client, model, "Say hello.", temperature=0, max_tokens=200)
    assert answer.choices[0].finish_reason == "stop"
    assert "<|im_end|>" not in answer.choices[0].message.content


def test_case_15_seed(client, model):
    def text(**fields):
        answer = ask(client, model, "Invent a name.", max_tokens=24, **fields)
        return answer.choices[0].message.content

    assert text(seed=42) == text(seed=42) == text(seed=42, temperature=1.0)
    assert text(seed=0) == text(seed=0)
    assert len({text() for _ in range(5)}) > 1


def test_case_19_20_logprobs(client, model):
    fields = dict(max_tokens=8, logprobs=True, top_logprobs=5)
    greedy = ask(client, model, "Count to five.", temperature=0, **fields)
    sampled = ask(
        client, model, "Count to five.", temperature=0.2, extra_body={"top_k": 1}, **fields)
    content = greedy.choices[0].logprobs.content
    assert len(content) == greedy.usage.completion_tokens
    for entry in content:
        top = [candidate.logprob for candidate in entry.top_logprobs]
        assert len(top) == 5 and top == sorted(top, reverse=True) and max(top) <= 0
        assert sum(math.exp(value) for value in top) <= 1 + 1e-6
        assert entry.top_logprobs[0].token == entry.token
        assert bytes(entry.bytes).decode("utf-8", "replace") == entry.token
    # Of the raw distribution: neither temperature nor truncation shows.
    assert content[0] == sampled.choices[0].logprobs.content[0]
    assert b"".join(bytes(e.bytes) for e in content).decode() == greedy.choices[0].message.content


def test_case_19_streamed_logprobs_with_tools(client, model):
    fields = dict(temperature=0, max_tokens=6, logprobs=True, top_logprobs=2, tools=[
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}])
    whole = ask(client, model, "Hi", **fields)
    entries = [
        entry
        for chunk in ask(client, model, "Hi", stream=True, **fields)
        for choice in chunk.choices
        if choice.logprobs
        for entry in choice.logprobs.content
    ]
    assert entries == whole.choices[0].logprobs.content


def test_case_23_choices(client, model):
    fields = dict(n=2, seed=4242, temperature=1.9, logprobs=True, top_logprobs=1, max_tokens=4)
    whole = ask(client, model, "Hi", **fields)
    assert [choice.index for choice in whole.choices] == [0, 1]
    assert whole.choices[0].message.content != whole.choices[1].message.content
    assert ask(client, model, "Hi", **fields).choices == whole.choices
    chunks = list(ask(client, model, "Hi", stream=True, **fields))
    for choice in whole.choices:
        text, reasons = joined(chunks, choice.index)
        assert (text, reasons) == (choice.message.content, [choice.finish_reason])
    single = ask(client, model, "Hi", **{**fields, "n": 1})
    assert whole.usage.prompt_tokens == single.usage.prompt_tokens


def test_case_41_parts(client, model):
    def prompt_and_text(content):
        answer = client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": content}],
            temperature=0, max_tokens=8)
        return answer.usage.prompt_tokens, answer.choices[0].message.content

    parts = [{"type": "text", "text": "tell me a "}, {"type": "text", "text": "riddle"}]
    assert prompt_and_text(parts) == prompt_and_text("tell me a riddle")


def test_case_42_tool_history(client, model):
    messages = [
        {"role": "user", "content": "What is 2+3?"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function",
             "function": {"name": "add", "arguments": '{"a":2,"b":3}'}}]},
        {"role": "tool", "tool_call_id": "1", "content": "5"},
    ]
    answer = client.chat.completions.create(model=model, messages=messages, max_tokens=4)
    assert answer.usage.completion_tokens > 0
    del messages[1]["content"]
    client.chat.completions.create(model=model, messages=messages, max_tokens=4)


def test_case_52_54_stream_shape(client, model):
    plain = list(ask(client, model, "Hi", stream=True, max_tokens=4, seed=1))
    assert all(chunk.usage is None and len(chunk.choices) == 1 for chunk in plain)
    chunks = list(ask(client, model, "Hi", stream=True, max_tokens=4, seed=1,
                      stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert len({(chunk.id, chunk.created, chunk.system_fingerprint) for chunk in chunks}) == 1
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 4
    assert [c.choices[0].finish_reason for c in chunks[:-1]][-1] == "length"
