"""openai-python against the responses endpoints."""

import json

import httpx
import jsonschema
import openai
import pydantic
import pytest
from openai.types.responses import Response, ResponseItemList, ResponseStreamEvent

import conftest

WEATHER = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Oslo"]}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "name": "weather", "parameters": WEATHER, "strict": True},
         {"type": "function", "name": "now", "parameters": None, "strict": None}]
GREEDY = {"temperature": 0, "max_output_tokens": 24}
EVENT = pydantic.TypeAdapter(ResponseStreamEvent)


def strictly(kind, value):
    """What the client's own types say of the JSON, which it does not check when it reads."""
    return kind.model_validate_json(json.dumps(value))


def post(server, path="/v1/responses", **body):
    return httpx.post(server.url + path, json=body, timeout=120)


def events_of(server, **body):
    reply = post(server, stream=True, **body)
    assert reply.status_code == 200 and "[DONE]" not in reply.text, reply.text
    events = []
    for block in reply.text.strip().split("\n\n"):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == "event: " + event["type"]
        EVENT.validate_json(data.removeprefix("data: "), strict=False)
        events.append(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


def timeless(response):
    """All but what no two answers share."""
    if isinstance(response, dict):
        return {key: timeless(value) for key, value in response.items()
                if key not in ("id", "call_id", "created_at", "completed_at")}
    return [timeless(item) for item in response] if isinstance(response, list) else response


def test_a_string(client, model, server):
    response = client.responses.create(model=model, input="Say hello.", **GREEDY)
    assert response.status in ("completed", "incomplete") and response.output_text
    chat = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": "Say hello."}], temperature=0,
        max_tokens=24)
    assert response.output_text == chat.choices[0].message.content
    assert response.usage.input_tokens == chat.usage.prompt_tokens
    assert response.usage.output_tokens == chat.usage.completion_tokens
    assert response.usage.output_tokens_details.reasoning_tokens == 0
    raw = post(server, input="Say hello.", **GREEDY).json()
    strictly(Response, raw)
    assert raw["usage"]["input_tokens_details"]["cached_tokens"] > 0


def test_items_are_the_chats_messages(client, model):
    response = client.responses.create(model=model, instructions="Be brief.", **GREEDY, input=[
        {"role": "developer", "content": "You like riddles."},
        {"role": "user", "content": [{"type": "input_text", "text": "Tell me "},
                                     {"type": "input_text", "text": "a riddle."}]},
        {"type": "message", "role": "assistant", "content": [
            {"type": "output_text", "text": "No.", "annotations": []}]},
        {"type": "function_call", "call_id": "c1", "name": "now", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "noon"},
        {"role": "user", "content": "And now?"},
    ])
    chat = client.chat.completions.create(model=model, temperature=0, max_tokens=24, messages=[
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": "You like riddles."},
        {"role": "user", "content": "Tell me a riddle."},
        {"role": "assistant", "content": "No.", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "name": "now", "content": "noon"},
        {"role": "user", "content": "And now?"}])
    assert response.output_text == chat.choices[0].message.content
    assert response.usage.input_tokens == chat.usage.prompt_tokens


@pytest.mark.parametrize("fields", [
    {"max_output_tokens": 200}, {"max_output_tokens": 3},
    {"tools": TOOLS, "tool_choice": "required", "max_output_tokens": 200, "temperature": 1.2},
    {"tools": TOOLS, "tool_choice": {"type": "function", "name": "weather"}},
    {"text": {"format": {"type": "json_schema", "name": "w", "schema": WEATHER}}}])
@pytest.mark.parametrize("seed", range(2))
def test_the_stream_is_the_response(server, fields, seed):
    body = {"input": "What is the weather in Paris?", "seed": seed, "temperature": 0.7, **fields}
    whole = strictly(Response, post(server, **body).json()).model_dump()
    events = events_of(server, **body)
    names = [event["type"] for event in events]
    assert names[:2] == ["response.created", "response.in_progress"]
    assert names[-1] == "response." + whole["status"]
    final = strictly(Response, events[-1]["response"]).model_dump()
    assert timeless(final) == timeless(whole) | {"usage": final["usage"]}
    assert final["usage"]["output_tokens"] == whole["usage"]["output_tokens"]

    # Item by item, in the order that the API documents.
    rest = events[2:-1]
    for index, item in enumerate(events[-1]["response"]["output"]):
        assert rest[0]["type"] == "response.output_item.added"
        assert rest[0]["item"]["status"] == "in_progress" and rest[0]["output_index"] == index
        end = next(i for i, e in enumerate(rest) if e["type"] == "response.output_item.done")
        mine, rest = rest[:end + 1], rest[end + 1:]
        assert mine[-1]["item"] == item and mine[-1]["output_index"] == index
        assert {e["item_id"] for e in mine[1:-1]} == {item["id"]}
        call = item["type"] == "function_call"
        kind = "function_call_arguments" if call else "output_text"
        inner = mine[1:-1] if call else mine[2:-2]
        if not call:
            assert mine[1]["type"] == "response.content_part.added" and not mine[1]["part"]["text"]
            assert mine[-2]["type"] == "response.content_part.done"
            assert mine[-2]["part"] == item["content"][0]
        assert {e["type"] for e in inner[:-1]} <= {f"response.{kind}.delta"}
        assert inner[-1]["type"] == f"response.{kind}.done"
        text = item["arguments"] if call else item["content"][0]["text"]
        assert "".join(e["delta"] for e in inner[:-1]) == text
        assert inner[-1]["arguments" if call else "text"] == text
    assert rest == []


def test_the_clients_stream(client, model):
    with client.responses.stream(model=model, input="Say hello.", temperature=0,
                                 max_output_tokens=300) as stream:
        text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert final.output_text == text and final.status == "completed"


def test_parsed_output(client, model):
    class City(pydantic.BaseModel):
        city: str
        big: bool

    response = client.responses.parse(
        model=model, input="Tell me about Oslo.", text_format=City, max_output_tokens=300)
    if response.status == "completed":
        assert isinstance(response.output_parsed, City)
    else:
        assert response.incomplete_details.reason == "max_output_tokens"


def test_json_object(client, model):
    response = client.responses.create(
        model=model, input="Answer in JSON: {\"a\": 1}", text={"format": {"type": "json_object"}},
        max_output_tokens=200, temperature=0)
    assert response.text.format.type == "json_object"
    if response.status == "completed":
        assert isinstance(json.loads(response.output_text), dict)


def test_a_call_and_its_output(client, model):
    first = client.responses.create(
        model=model, input="What is the weather in Paris?", tools=TOOLS, temperature=0,
        tool_choice={"type": "function", "name": "weather"}, max_output_tokens=100)
    call, = first.output
    assert call.type == "function_call" and call.status == "completed"
    jsonschema.validate(json.loads(call.arguments), WEATHER)
    second = client.responses.create(
        model=model, previous_response_id=first.id, tools=TOOLS, tool_choice="none", **GREEDY,
        input=[{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}])
    assert second.previous_response_id == first.id
    chat = client.chat.completions.create(model=model, temperature=0, max_tokens=24, messages=[
        {"role": "user", "content": "What is the weather in Paris?"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": call.call_id, "type": "function",
             "function": {"name": "weather", "arguments": call.arguments}}]},
        {"role": "tool", "tool_call_id": call.call_id, "content": "sunny"}])
    assert second.output_text == chat.choices[0].message.content
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=model, input=[
            {"type": "function_call_output", "call_id": "none", "output": "x"}])
    assert caught.value.param == "input"


def test_a_conversation_goes_on(client, model, server):
    first = client.responses.create(model=model, input="My name is Ada.", metadata={"k": "v"},
                                    instructions="Be brief.", **GREEDY)
    second = client.responses.create(model=model, input="What is my name?",
                                     previous_response_id=first.id, **GREEDY)
    # Instructions are not carried over.
    chat = client.chat.completions.create(model=model, temperature=0, max_tokens=24, messages=[
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": first.output_text},
        {"role": "user", "content": "What is my name?"}])
    assert second.output_text == chat.choices[0].message.content

    assert client.responses.retrieve(first.id) == first
    assert first.metadata == {"k": "v"} and first.store is True
    items = client.responses.input_items.list(second.id, order="asc").data
    assert [(item.role, item.content[0].text) for item in items] == [
        ("user", "My name is Ada."), ("assistant", first.output_text), ("user", "What is my name?")]
    url = f"/v1/responses/{second.id}/input_items"
    page = httpx.get(server.url + url, params={"limit": 2}).json()
    strictly(ResponseItemList, page)
    assert page["has_more"] and [i["id"] for i in page["data"]] == [items[2].id, items[1].id]
    page = httpx.get(server.url + url, params={"limit": 2, "after": page["last_id"]}).json()
    assert not page["has_more"] and [i["id"] for i in page["data"]] == [items[0].id]
    for query in ("limit=0", "order=up", "after=none"):
        assert httpx.get(f"{server.url}{url}?{query}").status_code == 400

    client.responses.delete(first.id)
    for gone in (lambda: client.responses.retrieve(first.id),
                 lambda: client.responses.delete(first.id),
                 lambda: client.responses.create(model=model, input="x",
                                                 previous_response_id=first.id)):
        with pytest.raises(openai.NotFoundError) as caught:
            gone()
        assert first.id in caught.value.message
    # The conversation that went on has all of it.
    client.responses.create(model=model, input="x", previous_response_id=second.id, **GREEDY)


def test_store_false(client, model):
    response = client.responses.create(model=model, input="Say hello.", store=False, **GREEDY)
    assert response.store is False
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)


@pytest.mark.parametrize("fields,param", [
    ({"input": []}, "input"), ({"input": 5}, "input"), ({}, "input"),
    ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
    ({"input": [{"role": "user"}]}, "input[0].content"),
    ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
     "input[0].content[0].type"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
    ({"input": [{"type": "function_call", "call_id": "c"}]}, "input[0].name"),
    ({"input": [{"type": "reasoning", "summary": [], "encrypted_content": "x"}]},
     "input[0].encrypted_content"),
    ({"input": "x", "background": True}, "background"),
    ({"input": "x", "truncation": "auto"}, "truncation"),
    ({"input": "x", "conversation": "c"}, "conversation"),
    ({"input": "x", "max_output_tokens": 0}, "max_output_tokens"),
    ({"input": "x", "max_tokens": 5}, "max_tokens"),
    ({"input": "x", "top_logprobs": 2}, "top_logprobs"),
    ({"input": "x", "include": ["file_search_call.results"]}, "include[0]"),
    ({"input": "x", "metadata": {"a": 1}}, "metadata"),
    ({"input": "x", "reasoning": {"effort": "some"}}, "reasoning.effort"),
    ({"input": "x", "reasoning": {"summary": "detailed"}}, "reasoning.summary"),
    ({"input": "x", "text": {"verbosity": "high"}}, "text.verbosity"),
    ({"input": "x", "text": {"format": {"type": "json_schema", "name": "n"}}},
     "text.format.schema"),
    ({"input": "x", "text": {"format": {"type": "json_schema", "name": "n",
                                        "schema": {"not": {}}}}}, "text.format.schema.not"),
    ({"input": "x", "tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"input": "x", "tools": [{"type": "function"}]}, "tools[0].name"),
    ({"input": "x", "tool_choice": "required", "tools": [
        {"type": "function", "name": "f", "parameters": {"not": {}}}]}, "tools[0].parameters.not"),
    ({"input": "x", "tool_choice": {"type": "function", "name": "g"}, "tools": TOOLS},
     "tool_choice"),
    ({"input": "x", "store": "yes"}, "store"),
])
def test_bad_fields(server, fields, param):
    reply = post(server, **fields)
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == param


def test_context(client, model):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=model, input="word " * 5000)
    assert caught.value.code == "context_length_exceeded" and caught.value.param == "input"


def test_responses_belong_to_their_key(tmp_path):
    server = conftest.Server(tmp_path / "log", "--context", "512", "--api-key", "one",
                             "--api-key", "two")
    try:
        server.wait_until_healthy()
        clients = [openai.OpenAI(base_url=server.url + "/v1", api_key=key, max_retries=0)
                   for key in ("one", "two")]
        model = clients[0].models.list().data[0].id
        made = clients[0].responses.create(model=model, input="Say hello.", **GREEDY)
        assert clients[0].responses.retrieve(made.id).id == made.id
        for ask in (lambda: clients[1].responses.retrieve(made.id),
                    lambda: clients[1].responses.delete(made.id),
                    lambda: clients[1].responses.create(model=model, input="x",
                                                        previous_response_id=made.id)):
            with pytest.raises(openai.NotFoundError):
                ask()
        # The key that counts is the one that opens the door.
        mixed = httpx.get(f"{server.url}/v1/responses/{made.id}",
                          headers={"Authorization": "Bearer two", "x-api-key": "one"})
        assert mixed.status_code == 404
    finally:
        assert server.stop() == 0
