"""The tables of docs/compat.md, row by row."""

import json
import re
import shlex
import subprocess

import httpx
import pytest

import conftest
from support import user

ROW = re.compile(r"^\| `(.+?)` \| [^|]+ \| (\w+) \|", re.MULTILINE)
TEXT = (conftest.ROOT / "docs/compat.md").read_text()
FLAGS, FIELDS = (ROW.findall(part) for part in TEXT.split("## Fields")[:2])


def test_the_tables_are_read():
    assert len(FLAGS) > 30 and len(FIELDS) > 30
    assert {state for _, state in FLAGS + FIELDS} <= {"same", "other", "ignored", "refused"}


@pytest.mark.parametrize("flag,state", FLAGS)
def test_flag(flag, state):
    arguments = shlex.split(flag)
    model = [] if {"-m", "--model"} & set(arguments) else ["--model", "m"]
    ended = subprocess.run([conftest.BINARY, "serve", "--print-config", *model, *arguments],
                           capture_output=True, text=True, timeout=30)
    assert (ended.returncode == 0) == (state != "refused"), ended.stderr


@pytest.mark.parametrize("field,state", FIELDS)
def test_field(server, field, state):
    field = json.loads(field)
    body = {"messages": user("Say hello."), "max_tokens": 4} | field
    reply = httpx.post(server.url + "/v1/chat/completions", json=body, timeout=120)
    if state != "refused":
        assert reply.status_code == 200, reply.text
        return
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == next(iter(field))
