"""A real server on a small real model, shared by the tests of this folder.

LOCKSTEP_TEST_BINARY and LOCKSTEP_TEST_MODEL name the program and the model; without them the
release build and the cached SmolLM2 are taken.
"""

import os
import pathlib
import signal
import socket
import subprocess
import time

import httpx
import openai
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("LOCKSTEP_TEST_BINARY", str(ROOT / "build" / "lockstep"))
MODEL = os.environ.get(
    "LOCKSTEP_TEST_MODEL",
    str(pathlib.Path.home() / ".cache/lockstep/models/SmolLM2-135M-Instruct.Q4_1.gguf"),
)
START_SECONDS = 120
STOP_SECONDS = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """`lockstep serve` as a child process."""

    def __init__(self, log_path, *flags, port=None, model=MODEL):
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = log_path
        with open(log_path, "wb") as log:
            self.process = subprocess.Popen(
                [BINARY, "serve", "--model", str(model), "--port", str(self.port), *flags],
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def log(self):
        return pathlib.Path(self.log_path).read_text(errors="replace")

    def wait_until_healthy(self):
        """The statuses that /health gave on the way."""
        seen = []
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            assert self.process.poll() is None, f"the server ended:\n{self.log()}"
            try:
                seen.append(httpx.get(self.url + "/health", timeout=5).status_code)
                if seen[-1] == 200:
                    return seen
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        raise AssertionError(f"not healthy after {START_SECONDS} s:\n{self.log()}")

    def stop(self):
        """The exit code after SIGTERM."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def client(self, **options):
        return openai.OpenAI(
            base_url=self.url + "/v1", api_key="none", max_retries=0, timeout=300, **options
        )


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("server") / "log", "--context", "2048")
    try:
        running.wait_until_healthy()
        yield running
    finally:
        code = running.stop()
    assert code == 0, f"exit code {code}:\n{running.log()}"


@pytest.fixture(scope="session")
def client(server):
    return server.client()


@pytest.fixture(scope="session")
def model(client):
    return client.models.list().data[0].id
