"""POST /admin/drain: running answers end, new ones are refused."""

import json

import httpx

import conftest
from support import eventually, metric, metrics, user


def running(server):
    return metric(metrics(httpx.get(server.url + "/metrics").text), "vllm:num_requests_running")


def test_drain(tmp_path):
    server = conftest.Server(tmp_path / "log", "--context", "2048")
    try:
        server.wait_until_healthy()
        drain = server.url + "/admin/drain"
        idle = {"answering": 0, "running": 0, "waiting": 0}
        assert httpx.get(drain).json() == {"status": "serving"} | idle
        body = {"messages": user("Count."), "stream": True, "ignore_eos": True, "max_tokens": 600,
                "temperature": 0, "stream_options": {"include_usage": True}}
        url = server.url + "/v1/chat/completions"
        with httpx.stream("POST", url, json=body, timeout=300) as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("data: ")
            assert eventually(lambda: running(server) == 1)
            for _ in range(2):  # asked twice it is the same
                asked = httpx.post(drain)
                assert asked.status_code == 200
                assert asked.json() == {"status": "draining", "answering": 1, "running": 1,
                                        "waiting": 0}
            health = httpx.get(server.url + "/health")
            assert health.status_code == 503 and health.json() == {"status": "draining"}
            for path, fields in (("/v1/chat/completions", {"messages": user("x")}),
                                 ("/v1/completions", {"prompt": "x"}),
                                 ("/v1/responses", {"input": "x"}),
                                 ("/v1/messages", {"messages": user("x"), "max_tokens": 1})):
                refused = httpx.post(server.url + path, json=fields)
                assert refused.status_code == 503 and int(refused.headers["Retry-After"]) > 0
                assert "draining" in refused.json()["error"]["message"]
            assert running(server) == 1
            events = [line.removeprefix("data: ") for line in lines if line]
        assert events[-1] == "[DONE]"
        assert json.loads(events[-2])["usage"]["completion_tokens"] == 600
        assert eventually(lambda: httpx.get(drain).json() == {"status": "drained"} | idle)
        assert httpx.post(drain).json()["status"] == "drained"
    finally:
        assert server.stop() == 0


def test_draining_needs_the_key(tmp_path):
    server = conftest.Server(tmp_path / "log", "--context", "256", "--api-key", "k")
    try:
        server.wait_until_healthy()
        assert httpx.post(server.url + "/admin/drain").status_code == 401
        assert httpx.get(server.url + "/health").status_code == 200
    finally:
        assert server.stop() == 0
