"""anthropic-python against POST /v1/messages."""

import json

import anthropic
import httpx
import pytest

TOOLS = [{
    "name": "weather",
    "description": "Tells the weather.",
    "input_schema": {"type": "object", "properties": {"city": {"enum": ["Paris", "Oslo"]}},
                     "required": ["city"]},
}]
PARTS = [{"role": "user", "content": [{"type": "text", "text": "Say "},
                                      {"type": "text", "text": "hello."}]}]
HELLO = [{"role": "user", "content": "Say hello."}]
# This client has no field of its own for it.
GREEDY = {"extra_body": {"temperature": 0}}


@pytest.fixture(scope="module")
def claude(server):
    return anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=300)


def test_message(claude, model):
    message = claude.messages.create(model=model, max_tokens=32, messages=HELLO, system="Be brief.",
                                     **GREEDY)
    assert message.type == "message" and message.role == "assistant" and message.model == model
    assert [block.type for block in message.content] == ["text"] and message.content[0].text
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert message.usage.input_tokens > 0 and message.usage.output_tokens > 0


def test_case_41_parts_are_the_joined_string(claude, model):
    fields = dict(model=model, max_tokens=16, **GREEDY)
    parts = claude.messages.create(messages=PARTS, system=[{"type": "text", "text": "s"}], **fields)
    whole = claude.messages.create(messages=HELLO, system="s", **fields)
    assert parts.content == whole.content
    assert parts.usage == whole.usage


def test_stop_sequences(claude, model):
    fields = dict(model=model, max_tokens=40, messages=HELLO, **GREEDY)
    text = claude.messages.create(**fields).content[0].text
    stop = text[3:6]
    message = claude.messages.create(stop_sequences=["never said", stop], **fields)
    assert message.stop_reason == "stop_sequence" and message.stop_sequence == stop
    assert "".join(block.text for block in message.content) == text[:text.index(stop)]


def test_case_55_events(claude, model):
    fields = dict(model=model, max_tokens=64, system=[{"type": "text", "text": "s"}], tools=TOOLS,
                  tool_choice={"type": "tool", "name": "weather"}, messages=HELLO, **GREEDY)
    names = []
    with claude.messages.stream(**fields) as stream:
        for event in stream:
            if event.type in ("text", "input_json"):  # the client's own
                continue
            if event.type == "message_start":
                start_tokens = event.message.usage.input_tokens
            if not names or names[-1] != event.type:
                names.append(event.type)
        final = stream.get_final_message()
    assert names == ["message_start", "content_block_start", "content_block_delta",
                     "content_block_stop", "message_delta", "message_stop"]
    whole = claude.messages.create(**fields)
    count = claude.messages.count_tokens(
        model=model, system=fields["system"], tools=TOOLS, messages=HELLO,
        tool_choice=fields["tool_choice"])
    assert start_tokens == whole.usage.input_tokens == count.input_tokens
    assert final.usage.output_tokens == whole.usage.output_tokens
    for message in (final, whole):
        assert message.stop_reason == "tool_use"
        assert [block.type for block in message.content] == ["tool_use"]
        assert message.content[0].name == "weather" and message.content[0].id
        assert message.content[0].input["city"] in ("Paris", "Oslo")


def test_a_tools_answer_goes_back(claude, model):
    message = claude.messages.create(model=model, max_tokens=8, tools=TOOLS, messages=[
        *HELLO,
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Paris"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}]},
    ])
    assert message.usage.output_tokens > 0


def test_errors(claude, model, server):
    with pytest.raises(anthropic.BadRequestError) as caught:
        claude.messages.create(model=model, max_tokens=0, messages=HELLO)
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    with pytest.raises(anthropic.NotFoundError) as caught:
        claude.messages.create(model="no-such", max_tokens=1, messages=HELLO)
    assert caught.value.body["type"] == "error"
    reply = httpx.post(server.url + "/v1/messages", content=json.dumps({"messages": HELLO}))
    assert reply.status_code == 400 and reply.json()["error"]["type"] == "invalid_request_error"
