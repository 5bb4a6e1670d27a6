"""What a conversation becomes, against Jinja as transformers sets it up."""


import gguf
import httpx
import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

import conftest

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CONVERSATIONS = [
    {"messages": [{"role": "user", "content": "Say hello."}]},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "a "},
                                               {"type": "text", "text": "é😀漢"}]}],
     "add_generation_prompt": False},
    {"messages": [{"role": "system", "content": "  Be brief.\n"}, {"role": "user", "content": ""},
                  {"role": "assistant", "content": "<|im_end|>"},
                  {"role": "user", "content": "\n\nx "}], "temperature": 0, "max_tokens": 3},
    {"messages": [{"role": "developer", "content": "d"}, {"role": "user", "content": "u"}],
     "tools": [TOOL], "chat_template_kwargs": {"enable_thinking": False}},
]
PATHS = ("/apply_template", "/apply-template", "/v1/apply_template")


def reference(template, body):
    """The messages as templates know them: text joined, developer called system."""
    messages = []
    for message in body["messages"]:
        content = message["content"]
        if isinstance(content, list):
            content = "".join(part["text"] for part in content)
        role = "system" if message["role"] == "developer" else message["role"]
        messages.append({"role": role, "content": content})
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(
        messages=messages, tools=body.get("tools"), bos_token="<|im_start|>",
        eos_token="<|im_end|>", add_generation_prompt=body.get("add_generation_prompt", True),
        **body.get("chat_template_kwargs", {}))


@pytest.fixture(scope="module")
def template():
    field = gguf.GGUFReader(conftest.MODEL).get_field("tokenizer.chat_template")
    return bytes(field.parts[field.data[0]]).decode()


@pytest.mark.parametrize("body", CONVERSATIONS)
def test_the_prompt_is_jinjas(server, template, body):
    prompts = {httpx.post(server.url + path, json=body).json()["prompt"] for path in PATHS}
    assert prompts == {reference(template, body)}


@pytest.mark.parametrize("body", CONVERSATIONS)
def test_the_prompt_is_what_chat_tokenises(server, body):
    body = body | {"max_tokens": 1}
    prompt = httpx.post(server.url + PATHS[0], json=body).json()["prompt"]
    chat = httpx.post(server.url + "/v1/chat/completions", json=body, timeout=120).json()
    of_text = httpx.post(server.url + "/tokenize",
                         json={"prompt": prompt, "add_special_tokens": False}).json()
    of_messages = httpx.post(server.url + "/tokenize", json=body).json()
    assert of_messages == of_text
    assert of_text["count"] == chat["usage"]["prompt_tokens"]


def test_wrong_requests_are_chats(server):
    for body in ({}, {"messages": []}, {"messages": [{"role": "x", "content": "y"}]},
                 {"messages": [{"role": "user", "content": "x"}], "chat_template": "y"}):
        chat = httpx.post(server.url + "/v1/chat/completions", json=body)
        mine = httpx.post(server.url + PATHS[0], json=body)
        assert (mine.status_code, mine.json()) == (chat.status_code, chat.json())
        assert mine.status_code == 400
    both = httpx.post(server.url + "/tokenize", json={
        "prompt": "x", "messages": [{"role": "user", "content": "x"}]})
    assert both.status_code == 400 and both.json()["error"]["param"] == "prompt"


def test_a_prompt_beyond_the_context_is_shown(server):
    body = {"messages": [{"role": "user", "content": "word " * 5000}]}
    prompt = httpx.post(server.url + PATHS[0], json=body).json()["prompt"]
    assert body["messages"][0]["content"].strip() in prompt
