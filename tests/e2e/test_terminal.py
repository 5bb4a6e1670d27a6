"""`lockstep chat` and `lockstep generate` as a person at a terminal sees them."""

import os
import pty
import select
import signal
import subprocess
import time

import pytest

import conftest

PATIENCE = 120
CTRL_C, CTRL_D = b"\x03", b"\x04"
ESCAPE = b"\x1b["


class Terminal:
    """A program on a terminal of its own, where Ctrl-C is a signal and Ctrl-D an end of input."""

    def __init__(self, *args, **environment):
        self.output = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(environment)
            os.execv(conftest.BINARY, [conftest.BINARY, *map(str, args)])

    def type(self, keys):
        os.write(self.terminal, keys)

    def wait_for(self, text, after=0):
        """Reads until `text` comes behind the first `after` bytes; where it ends."""
        end = time.monotonic() + PATIENCE
        while text not in self.output[after:]:
            assert time.monotonic() < end, self.output
            assert self._read(), self.output
        return self.output.index(text, after) + len(text)

    def _read(self):
        """False when the program has closed the terminal."""
        if not select.select([self.terminal], [], [], 1)[0]:
            return True
        try:
            piece = os.read(self.terminal, 65536)
        except OSError:  # the other end is closed
            return False
        self.output += piece
        return piece != b""

    def end(self):
        """The exit code, once it ends by itself."""
        end = time.monotonic() + PATIENCE
        while self._read():
            assert time.monotonic() < end, self.output
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(self.terminal)


@pytest.fixture
def terminal():
    made = []

    def start(*args, **environment):
        made.append(Terminal(*args, **environment))
        return made[-1]

    yield start
    for one in made:
        one.close()


def chat(start, **environment):
    return start(
        "chat", conftest.MODEL, "--temperature", 0, "--context", 2048, "--max-tokens", 1500,
        **environment)


def test_chat_streams_and_obeys_the_keys(terminal):
    chatting = chat(terminal)
    at = chatting.wait_for(b"> ")
    chatting.type(b"Write a very long story about a lighthouse.\n")
    at = chatting.wait_for(b"lighthouse.\r\n", at)
    # A piece of the answer is here before the answer is over.
    while len(chatting.output) < at + 40:
        assert chatting._read()
    assert b" tokens" not in chatting.output[at:]
    chatting.type(CTRL_C)
    at = chatting.wait_for(b"tokens, stopped]", at)
    # The program goes on, and knows what was said.
    at = chatting.wait_for(b"> ", at)
    chatting.type(b"What is two plus two? Answer with a number.\n")
    begin = chatting.wait_for(b"number.\r\n", at)
    at = chatting.wait_for(b" tokens]", begin)
    assert at - begin > 40, chatting.output[begin:at]
    at = chatting.wait_for(b"> ", at)
    # At the prompt Ctrl-C drops the line, and Ctrl-D leaves.
    # However early it comes: behind the ">" the program may not wait for a line yet.
    for _ in range(50):
        chatting.type(b"no" + CTRL_C)
        at = chatting.wait_for(b"Ctrl-D or /exit leaves.", at)
        at = chatting.wait_for(b"> ", at)
    chatting.type(CTRL_D)
    assert chatting.end() == 0


def test_chat_has_colours_only_on_a_terminal(terminal):
    coloured = chat(terminal)
    coloured.wait_for(b"> ")
    assert ESCAPE in coloured.output
    coloured.type(CTRL_D)
    assert coloured.end() == 0
    plain = chat(terminal, NO_COLOR="1")
    plain.wait_for(b"> ")
    plain.type(b"/exit\n")
    assert plain.end() == 0
    assert ESCAPE not in plain.output
    piped = subprocess.run(
        [conftest.BINARY, "chat", conftest.MODEL, "--temperature", "0", "--max-tokens", "8"],
        input=b"Hi\n", capture_output=True, timeout=PATIENCE)
    assert piped.returncode == 0, piped.stderr
    assert ESCAPE not in piped.stdout and b" + 8 tokens, cut at the limit]" in piped.stdout


def test_generate_prints_the_text_and_nothing_else(client, model, terminal):
    said = client.completions.create(
        model=model, prompt="The capital of France is", max_tokens=12, temperature=0).choices[0].text
    args = ["generate", conftest.MODEL, "The capital of France is", "-n", "12", "--temperature", "0"]
    piped = subprocess.run([conftest.BINARY, *args], capture_output=True, timeout=PATIENCE)
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout.decode() == said + "\n"
    # On a terminal too, where the lines of the log come first.
    seen = terminal(*args, NO_COLOR="1")
    assert seen.end() == 0
    assert seen.output.decode().replace("\r\n", "\n").endswith("\n" + said + "\n")
    assert ESCAPE not in seen.output
