"""Constrained answers of a real model, judged by the jsonschema package and by Python's re."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import httpx
import jsonschema
import openai
import pytest

from support import joined, user

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 12},
        "age": {"type": "integer", "minimum": 3, "maximum": 99},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}

SCHEMAS = {
    "person": PERSON,
    "case_24_pattern": {"type": "string", "pattern": r"^hello there\!$"},
    "case_25_ref": {
        "type": "array", "minItems": 3, "maxItems": 3,
        "items": {"type": "object", "required": ["c"], "properties": {"c": {"$ref": "#/$defs/C"}}},
        "$defs": {"C": {"enum": ["Alice", "Biff"]}},
    },
    "case_26_integer": {"type": "integer", "minimum": 3, "maximum": 4000},
    "case_26_range": {"type": "integer", "minimum": -123, "maximum": 42},
    "case_26_number": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "case_27_typed": {
        "type": "object", "properties": {"number": {"type": "integer", "minimum": 0,
                                                    "maximum": 10}},
        "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 9},
        "maxProperties": 2, "required": ["number"],
    },
    "case_28_enum": {"enum": [1, 2, 3]},
    "case_28_mixed": {"enum": [True, None, 'a"b\\c', "é"]},
    "case_28_null": {"const": None},
    "any_of": {"anyOf": [{"type": "boolean"}, {"type": "string", "format": "date"}]},
    "all_of": {"allOf": [
        {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
        {"properties": {"b": {"type": "null"}}, "required": ["b"], "maxProperties": 2}]},
}


# Digits and names of properties may go on for as long as the model likes.
OPEN = {"case_26_number", "case_27_typed"}


def ask(client, model, text="Tell me about somebody.", **fields):
    fields.setdefault("max_tokens", 120)
    return client.chat.completions.create(model=model, messages=user(text), **fields)


def schema_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "r", "strict": True, "schema": schema}}


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("temperature", [0, 1.5])
def test_cases_24_to_28_answers_validate(client, model, name, temperature):
    answer = ask(client, model, temperature=temperature, seed=3, n=2,
                 response_format=schema_format(SCHEMAS[name]))
    for choice in answer.choices:
        if choice.finish_reason == "length" and name in OPEN:
            continue
        assert choice.finish_reason == "stop", choice.message.content
        jsonschema.validate(json.loads(choice.message.content), SCHEMAS[name],
                            format_checker=jsonschema.FormatChecker())


def test_stream_equals_whole(client, model):
    fields = dict(temperature=1.0, seed=5, response_format=schema_format(PERSON))
    whole = ask(client, model, **fields)
    text, reasons = joined(ask(client, model, stream=True, **fields))
    assert text == whole.choices[0].message.content and reasons == ["stop"]


def test_case_26_a_bias_does_not_break_the_grammar(client, model, server):
    reply = httpx.post(server.url + "/tokenize",
                       json={"prompt": "0", "add_special_tokens": False})
    zero = reply.json()["tokens"][0]
    answer = ask(client, model, response_format=schema_format(SCHEMAS["case_26_integer"]),
                 logit_bias={str(zero): 100})
    jsonschema.validate(json.loads(answer.choices[0].message.content), SCHEMAS["case_26_integer"])


def test_case_31_odd_tokens(client, model):
    answer = ask(client, model, response_format={"type": "json_object"}, max_tokens=30,
                 logit_bias={str(token): 100 for token in range(3, 17)})  # control tokens
    assert answer.choices[0].message.content.startswith("{")


def test_case_32_json_mode_is_bounded(client, model):
    answer = ask(client, model, "x", response_format={"type": "json_object"}, max_tokens=300,
                 temperature=0)
    choice = answer.choices[0]
    assert not re.search(r"\s{33}", choice.message.content.replace("\\n", ""))
    if choice.finish_reason == "stop":
        assert isinstance(json.loads(choice.message.content), dict)
    else:
        assert choice.finish_reason == "length"


@pytest.mark.parametrize("schema, param", [
    ({"not": {"type": "string"}}, "not"),
    ({"properties": {"a": {"uniqueItems": True}}}, "properties.a.uniqueItems"),
    ({"properties": {"a": {"format": "no-such"}}}, "properties.a.format"),
    ({"properties": {"a": {"pattern": "(?<=x)*"}}}, "properties.a.pattern"),
    ({"$ref": "#"}, "$ref"),
])
def test_case_24_33_refused_by_keyword_and_path(client, model, schema, param):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, model, response_format=schema_format(schema))
    assert caught.value.param == f"response_format.json_schema.schema.{param}"
    assert param.split(".")[-1] in caught.value.message


@pytest.mark.parametrize("fields, pattern", [
    ({"guided_regex": r"\d{3}-\d{4}"}, r"\d{3}-\d{4}"),
    ({"guided_choice": ["yes", "no"]}, "yes|no"),
    ({"structured_outputs": {"regex": "[a-c]{5}"}}, "[a-c]{5}"),
    ({"structured_outputs": {"choice": ["left", "right"]}}, "left|right"),
    ({"guided_grammar": 'root ::= ("a" | "b"){4} [0-9]'}, "[ab]{4}[0-9]"),
    ({"guided_grammar": 'start: /[xy]{2}/ "!"'}, "[xy]{2}!"),
    ({"guided_json": {"type": "integer", "minimum": 10, "maximum": 20}}, "1[0-9]|20"),
])
def test_expressions_choices_and_grammars(client, model, fields, pattern):
    chat = ask(client, model, extra_body=fields)
    legacy = client.completions.create(model=model, prompt="Number:", max_tokens=60,
                                       extra_body=fields)
    for text in (chat.choices[0].message.content, legacy.choices[0].text):
        assert re.fullmatch(pattern, text), text


def test_rows_with_and_without_grammars_do_not_disturb_each_other(client, model):
    def text(index):
        fields = dict(temperature=1.0, seed=index, max_tokens=60)
        if index % 2:
            fields["response_format"] = schema_format(PERSON)
        return ask(client, model, **fields).choices[0].message.content

    alone = [text(i) for i in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(text, range(6))) == alone
