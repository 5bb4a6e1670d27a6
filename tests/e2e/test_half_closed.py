"""Clients that end their own side once the request is sent, as a pipe into nc does."""

import json
import socket

import pytest

# What may come before the answer, to see whether somebody still reads.
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"


def exchange(server, version, **fields):
    body = json.dumps({"prompt": "a", "max_tokens": 200, "ignore_eos": True, **fields})
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as raw:
        raw.sendall((f"POST /v1/completions HTTP/{version}\r\nHost: x\r\n"
                     f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
        raw.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: raw.recv(65536), b""))


def test_a_whole_answer(server):
    received = exchange(server, "1.1")
    head, _, body = received.removeprefix(INTERIM).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ") and b"Connection: close" in head
    assert json.loads(body)["usage"]["completion_tokens"] == 200


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_stream(server, version):
    received = exchange(server, version, stream=True)
    assert received.removeprefix(INTERIM).startswith(b"HTTP/1.1 200 ")
    assert b"data: [DONE]" in received
