"""The works of a server: how fast it starts, how it serves waves of clients, how a long prompt
joins running streams. The same for every peer that speaks HTTP."""

import http.client
import socket
import subprocess
import time

import http_load
from common import Unavailable, environment, peak_memory_mib, stop

PROMPT, ANSWER = 130, 128
LONG_PROMPT = 2050
RUNNING, RUNNING_ANSWER = 7, 1500


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    """Whether the server says that it is ready."""
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class Server:
    """A running server; `command(port)` is its command line, `extra` its environment."""

    def __init__(self, command, extra, model, log, timeout=300):
        self.port = free_port()
        self.model = model
        self.log = open(log, "wb")
        self.begin = time.monotonic()
        self.process = subprocess.Popen(
            [str(part) for part in command(self.port)], stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log, env=environment(**extra), start_new_session=True)
        while not answers(self.port):
            if self.process.poll() is not None or time.monotonic() > self.begin + timeout:
                stop(self.process)
                raise Unavailable(f"the server did not start; see {log}")
            time.sleep(0.005)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop(self.process)
        self.log.close()

    def first_token(self, prompt):
        """Seconds from the start of the process to the first token of an answer."""
        stream = http_load.run([http_load.Stream(self.port, self.model, prompt, 1)])[0]
        return stream.arrivals()[0] - self.begin

    def wave(self, prompts, answer=ANSWER):
        return http_load.load(self.port, self.model, prompts, answer)

    def join(self, prompts, long_prompt):
        return http_load.join(self.port, self.model, prompts, long_prompt, RUNNING_ANSWER)

    def memory(self):
        return peak_memory_mib(self.process.pid)


def prompts_of(words, count, length=PROMPT, at=0):
    """`count` prompts of `length` token ids, no two of which begin alike."""
    return [[words[(at + i * 37 + j) % len(words)] for j in range(length)] for i in range(count)]


def start(open_server, words):
    """Start to first token. The files are in the page cache, as for every peer."""
    with open_server(8) as server:
        return {"start to first token s": server.first_token(words[:8])}


def serve(open_server, words, clients):
    with open_server(clients) as server:
        server.wave(prompts_of(words, clients, at=4000), 16)
        figures = server.wave(prompts_of(words, clients))
        figures["peak memory MiB"] = server.memory()
    return {f"serve {clients}: {name}": value for name, value in figures.items()}


def join(open_server, words):
    with open_server(8) as server:
        server.wave(prompts_of(words, 8, at=4000), 16)
        figures = server.join(prompts_of(words, RUNNING), words[-LONG_PROMPT:])
    return {f"join: {name}": value for name, value in figures.items()}


def served(open_server, work, words):
    """The figures of one of the works of a server."""
    if work == "start":
        return start(open_server, words)
    if work == "join":
        return join(open_server, words)
    return serve(open_server, words, int(work.removeprefix("serve-")))
