"""Small helpers of the end-to-end tests."""

import re
import time


def user(text):
    return [{"role": "user", "content": text}]


def joined(chunks, index=0):
    """The text of one choice of a stream, chat or completion, and its finish reasons."""
    text, reasons = "", []
    for chunk in chunks:
        for choice in chunk.choices:
            if choice.index != index:
                continue
            text += (choice.delta.content or "") if hasattr(choice, "delta") else choice.text
            if choice.finish_reason is not None:
                reasons.append(choice.finish_reason)
    return text, reasons


SAMPLE = re.compile(r'^([a-zA-Z_:][\w:]*)(\{.*\})? (\S+)$')


def metrics(page):
    """Every sample of a Prometheus page: {'name{labels}': value}."""
    values = {}
    for line in page.splitlines():
        if line.startswith("#"):
            assert re.match(r"^# (HELP|TYPE) [a-zA-Z_:][\w:]* \S", line), line
            continue
        match = SAMPLE.match(line)
        assert match, line
        values[match[1] + (match[2] or "")] = float(match[3])
    return values


def metric(values, name):
    return sum(value for key, value in values.items() if key.split("{")[0] == name)


def eventually(predicate, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if predicate():
            return True
        time.sleep(0.01)
    return False
