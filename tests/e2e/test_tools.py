"""Tools through openai-python, on a model whose template knows none: what must be called is
enforced by a grammar."""

import json

import httpx
import jsonschema
import openai
import pytest

from support import user

WEATHER = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Oslo"]}, "days": {"type": "integer", "minimum": 1,
                                                               "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": "weather", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "now"}},
]


def ask(client, model, **fields):
    return client.chat.completions.create(
        model=model, messages=user("What is the weather in Paris?"), tools=TOOLS, max_tokens=200,
        **fields)


def check(call):
    assert call.type == "function" and call.id
    arguments = json.loads(call.function.arguments)
    if call.function.name == "weather":
        jsonschema.validate(arguments, WEATHER)
    else:
        assert call.function.name == "now" and arguments == {}


def test_a_named_tool_is_called(client, model):
    choice = ask(client, model, tool_choice={
        "type": "function", "function": {"name": "weather"}}).choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.content is None
    assert [call.function.name for call in choice.message.tool_calls] == ["weather"]
    check(choice.message.tool_calls[0])


def test_required_without_parallel_calls(client, model):
    choice = ask(client, model, tool_choice="required", parallel_tool_calls=False).choices[0]
    assert len(choice.message.tool_calls) == 1
    check(choice.message.tool_calls[0])


@pytest.mark.parametrize("seed", range(4))
def test_case_37_38_the_stream_is_the_answer(client, model, seed):
    fields = dict(tool_choice="required", seed=seed, temperature=1.2)
    whole = ask(client, model, **fields).choices[0]
    calls, reasons = [], []
    for chunk in ask(client, model, stream=True, **fields):
        choice = chunk.choices[0]
        assert not choice.delta.content
        for delta in choice.delta.tool_calls or []:
            if delta.index == len(calls):
                assert delta.id and delta.function.name
                calls.append([delta.function.name, ""])
            else:
                assert delta.index == len(calls) - 1 and not delta.id and not delta.function.name
            calls[delta.index][1] += delta.function.arguments or ""
        if choice.finish_reason:
            reasons.append(choice.finish_reason)
    assert reasons == [whole.finish_reason]
    assert calls == [[c.function.name, c.function.arguments] for c in whole.message.tool_calls]
    if whole.finish_reason == "tool_calls":
        for call in whole.message.tool_calls:
            check(call)
    else:
        assert whole.finish_reason == "length"


def test_auto_may_answer_in_text(client, model):
    choice = ask(client, model, tool_choice="auto", temperature=0).choices[0]
    assert choice.finish_reason in ("stop", "length", "tool_calls")
    assert choice.message.content or choice.message.tool_calls


def test_case_42_tools_in_the_history(client, model):
    call = {"id": "1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    for content in ({"content": None}, {}):
        answer = client.chat.completions.create(model=model, tools=TOOLS, max_tokens=8, messages=[
            *user("What time is it?"),
            {"role": "assistant", "tool_calls": [call], **content},
            {"role": "tool", "tool_call_id": "1", "content": "5"},
        ])
        assert answer.usage.completion_tokens > 0


def test_case_33_nested_tools_are_refused(client, model, server):
    body = ('{"messages":[{"role":"user","content":"x"}],"tools":' + "[" * 3000 + "]" * 3000 + "}")
    assert httpx.post(server.url + "/v1/chat/completions", content=body).status_code == 400
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model=model, messages=user("x"), tool_choice="required", tools=[
                {"type": "function", "function": {"name": "f", "parameters": {"not": {}}}}])
    assert caught.value.param == "tools[0].function.parameters.not"
