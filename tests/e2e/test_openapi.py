"""GET /openapi.json against the handlers: a fuzzer that reads it, and each field by itself."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import httpx
import jsonschema
import pytest

import conftest

TINY = conftest.ROOT / "tests/conformance/checkpoints/tiny-qwen3-bf16"
TEMPLATE = ("{% for m in messages %}{{ m.role }}: {{ m.content }}<|end|>{% endfor %}"
            "{% if add_generation_prompt %}assistant: {% endif %}")
CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,"
          "response_schema_conformance,response_headers_conformance")
USER = {"messages": [{"role": "user", "content": "x"}]}
BODIES = {"chat": USER, "completion": {"prompt": "x"}, "createResponse": {"input": "x"},
          "message": USER | {"max_tokens": 1}, "countTokens": USER, "tokenize": {"prompt": "x"},
          "detokenize": {"tokens": [5]}, "applyTemplate": USER, "applyTemplateLlama": USER,
          "applyTemplateV1": USER}
STRANGE = ([[{}]], {"x": [[]]}, "\x00?", -1e300, True)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A server whose answers take no time."""
    folder = tmp_path_factory.mktemp("openapi")
    shutil.copytree(TINY, folder / "model")
    settings = folder / "model/tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"chat_template": TEMPLATE}))
    server = conftest.Server(folder / "log", "--context", "192", model=folder / "model")
    try:
        server.wait_until_healthy()
        yield server
    finally:
        assert server.stop() == 0


@pytest.fixture(scope="module")
def document(tiny):
    return httpx.get(tiny.url + "/openapi.json").json()


def operations(document):
    for path, methods in document["paths"].items():
        for operation in methods.values():
            yield path, operation


def resolve(document, schema):
    while "$ref" in schema:
        _, _, kind, name = schema["$ref"].split("/")
        schema = document["components"][kind][name]
    return schema


def fields(document, schema):
    schema = resolve(document, schema)
    found = dict(schema.get("properties", {}))
    for part in schema.get("allOf", []) + schema.get("anyOf", []):
        found |= fields(document, part)
    return found


def test_it_is_a_document_of_schemas(document):
    assert document["openapi"] == "3.1.0" and document["info"]["version"]
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_each_field_is_the_handlers(tiny, document):
    """A value that the document refuses is refused by name: no field is only written down."""
    asked = set()
    for path, operation in operations(document):
        if "requestBody" not in operation:
            continue
        name = operation["operationId"]
        asked.add(name)
        content = operation["requestBody"]["content"]["application/json"]
        reply = httpx.post(tiny.url + path, json=BODIES[name], timeout=60)
        assert reply.status_code == 200, (path, reply.text)
        for field, schema in fields(document, content["schema"]).items():
            valid = jsonschema.Draft202012Validator(
                schema | {"components": document["components"]}).is_valid
            wrong = next(value for value in STRANGE if not valid(value))
            body = {key: value for key, value in BODIES[name].items() if key != field}
            # Of a text's tokens no field of a chat is asked.
            if name == "tokenize":
                body = USER if field not in BODIES[name] | {"add_special_tokens": 0} else body
            reply = httpx.post(tiny.url + path, json=body | {field: wrong}, timeout=60)
            assert reply.status_code == 400, (path, field, wrong, reply.text)
            assert f"'{field}" in reply.json()["error"]["message"], (path, field, reply.text)
    assert asked == set(BODIES)


def test_fuzzed(tiny, tmp_path):
    program = pathlib.Path(sys.executable).parent / "schemathesis"
    ended = subprocess.run(
        [program, "run", tiny.url + "/openapi.json", "--checks", CHECKS, "--seed", "1",
         "--max-examples", "12", "--phases", "coverage,fuzzing", "--exclude-operation-id", "drain",
         "--request-timeout", "60", "--continue-on-failure", "--no-shrink", "--warnings", "off"],
        cwd=tmp_path, capture_output=True, text=True, timeout=900,
        env=os.environ | {"NO_COLOR": "1", "COLUMNS": "100"})
    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:]
    assert httpx.get(tiny.url + "/health").status_code == 200
