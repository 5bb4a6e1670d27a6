"""The trace of a server: what Perfetto would show of two requests."""

import json

import conftest
from support import joined, user


def test_a_trace_has_every_part_of_a_request(tmp_path):
    path = tmp_path / "trace.json"
    server = conftest.Server(tmp_path / "log", "--trace", str(path), "--context", "1024")
    try:
        server.wait_until_healthy()
        client = server.client()
        model = client.models.list().data[0].id
        ask = dict(model=model, messages=user("Count to five. " * 40), max_tokens=6, temperature=0)
        joined(client.chat.completions.create(stream=True, **ask))
        client.chat.completions.create(**ask)
    finally:
        assert server.stop() == 0, server.log()
    events = json.loads(path.read_text())
    lanes = {}
    for event in events:
        lanes.setdefault((event["pid"], event["tid"]), []).append(event)
    engine = {event["name"] for event in lanes[1, 0]}
    assert {"step", "plan", "compute", "emit"} <= engine
    requests = [spans for (pid, lane), spans in sorted(lanes.items()) if pid == 2 and lane > 0]
    assert len(requests) == 2
    for spans, writes in zip(requests, ({"first write", "last write"}, {"write"})):
        names = {event["name"] for event in spans}
        assert {"request", "queue", "prompt", "first token", "decode"} | writes == names
        whole = next(event for event in spans if event["name"] == "request")
        for event in spans:
            if event["name"] in ("queue", "prompt", "decode", "first token"):
                assert whole["ts"] <= event["ts"]
                assert event["ts"] + event.get("dur", 0) <= whole["ts"] + whole["dur"] + 0.01
    cached = [next(e for e in spans if e["name"] == "request")["args"]["cached_tokens"]
              for spans in requests]
    assert cached[0] == 0 and cached[1] > 100


def test_a_trace_that_cannot_be_written_is_refused(tmp_path):
    server = conftest.Server(tmp_path / "log", "--trace", str(tmp_path / "no" / "trace.json"))
    assert server.process.wait(60) == 2
    assert "no/trace.json" in server.log()
