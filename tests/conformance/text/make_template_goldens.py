#!/usr/bin/env python3
"""Writes goldens/templates.json: what Python's Jinja makes of chat templates, set up as the
transformers library sets it up.

Templates are those that tools/fetch_llama_cpp_source.py fetches and the one in SmolLM2's GGUF file.
The golden file holds the conversations and, for each template and conversation, the start of the
SHA-256 of the text, or {"raised": message} when the template raised, or {"failed": type}.
With arguments TEMPLATE CONVERSATION it prints that text instead.

Needs Jinja2 and gguf as pinned in tests/requirements.txt.
"""

import datetime
import hashlib
import importlib.metadata
import json
import os
import pathlib
import sys

import gguf
import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

from conversations import CONVERSATIONS

HERE = pathlib.Path(__file__).resolve().parent
CACHE = os.environ.get("LOCKSTEP_CACHE") or os.path.expanduser("~/.cache/lockstep")
TIME = 1753012345
CONSTANTS = {"bos_token": "<BOS>", "eos_token": "<EOS>"}


class Generation(jinja2.ext.Extension):
    """Renders generation blocks as they are."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_content")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _content(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def strftime_now(form):
    return datetime.datetime.fromtimestamp(TIME, datetime.UTC).strftime(form)


def environment():
    result = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    result.filters["tojson"] = tojson
    result.globals["raise_exception"] = raise_exception
    result.globals["strftime_now"] = strftime_now
    return result


def templates():
    models = os.environ.get("LOCKSTEP_LLAMA_CPP_MODELS") or f"{CACHE}/llama-cpp-python-0.3.36/models"
    found = {path.stem: path.read_text() for path in sorted(pathlib.Path(models, "templates").glob("*.jinja"))}
    model = os.environ.get("LOCKSTEP_MODEL") or f"{CACHE}/models/SmolLM2-135M-Instruct.Q4_1.gguf"
    found["SmolLM2"] = gguf.GGUFReader(model).fields["tokenizer.chat_template"].contents()
    return found


def render(source, context):
    """The text, or what went wrong."""
    try:
        template = environment().from_string(source)
        # Through JSON, as a server gets it.
        return template.render(**{**CONSTANTS, **json.loads(json.dumps(context))})
    except jinja2.exceptions.TemplateError as error:
        if type(error) is jinja2.exceptions.TemplateError:
            return {"raised": str(error)}
        return {"failed": type(error).__name__}
    except Exception as error:  # whatever Python raises in a template fails that rendering
        return {"failed": type(error).__name__}


def main():
    sources = templates()
    if len(sys.argv) == 3:
        print(render(sources[sys.argv[1]], CONVERSATIONS[sys.argv[2]]), end="")
        return
    rendered = {}
    for name, source in sources.items():
        rendered[name] = {}
        for conversation, context in CONVERSATIONS.items():
            result = render(source, context)
            if isinstance(result, str):
                result = hashlib.sha256(result.encode()).hexdigest()[:16]
            rendered[name][conversation] = result
    golden = {"versions": {name: importlib.metadata.version(name) for name in ("Jinja2",)},
              "time": TIME, "constants": CONSTANTS, "conversations": CONVERSATIONS, "rendered": rendered}
    path = HERE / "goldens" / "templates.json"
    path.write_text(json.dumps(golden, ensure_ascii=True, indent=0, separators=(",", ":")) + "\n")
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
