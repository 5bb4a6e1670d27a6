"""Streaming clients of an OpenAI completions endpoint, all in one thread.

While a load runs, arriving bytes are only stored with their time; everything else happens after
it, so that the clients take as little of the machine as they can from the server they measure.
"""

import json
import selectors
import socket
import time


class Stream:
    """One request whose answer streams."""

    def __init__(self, port, model, prompt, tokens):
        body = json.dumps({
            "model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0,
            "stream": True, "stream_options": {"include_usage": True}, "ignore_eos": True,
            "cache_prompt": False}).encode()
        self.request = (b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                        b"Content-Type: application/json\r\nConnection: close\r\n"
                        b"Content-Length: %d\r\n\r\n" % len(body)) + body
        self.port = port
        self.pieces = []  # (time, bytes)
        self.begin = None
        self.open = False

    def start(self, selector):
        self.begin = time.monotonic()
        self.socket = socket.create_connection(("127.0.0.1", self.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(self.request)
        self.socket.setblocking(False)
        selector.register(self.socket, selectors.EVENT_READ, self)
        self.open = True

    def receive(self, selector):
        data = self.socket.recv(1 << 18)
        self.pieces.append((time.monotonic(), data))
        if not data:
            self.close(selector)

    def close(self, selector):
        if self.open:
            selector.unregister(self.socket)
            self.socket.close()
            self.open = False

    def events(self):
        """The answer's events as (time of arrival, parsed JSON)."""
        if not self.pieces[0][1].startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"the server answered {b''.join(p for _, p in self.pieces)[:400]}")
        found, text = [], b""
        for when, piece in self.pieces:
            text += piece
            # An event is a line; what frames chunks of HTTP stands on lines of its own.
            *lines, text = text.split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    found.append((when, json.loads(line[6:])))
        return found

    def arrivals(self):
        """The times at which text arrived."""
        return [when for when, event in self.events()
                if event.get("choices") and event["choices"][0].get("text")]

    def tokens(self):
        """Tokens of the answer, as the server counts them; 0 without the count."""
        for _, event in reversed(self.events()):
            if event.get("usage"):
                return event["usage"]["completion_tokens"]
        return 0


def run(streams, until=None, more=None, timeout=600):
    """Starts all streams and reads them until all end, or `until()` holds.

    `more()` may return another stream to start while those run.
    """
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            stream.start(selector)
        deadline = time.monotonic() + timeout
        while any(s.open for s in streams) and not (until and until()):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the streams did not end within {timeout} s")
            for key, _ in selector.select(0.02):
                key.data.receive(selector)
            if more and (stream := more()):
                streams.append(stream)
                stream.start(selector)
        for stream in streams:
            stream.close(selector)
    return streams


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def load(port, model, prompts, tokens):
    """One wave of clients, one a prompt; the figures of the whole."""
    streams = run([Stream(port, model, prompt, tokens) for prompt in prompts])
    arrivals = [stream.arrivals() for stream in streams]
    for stream, times in zip(streams, arrivals):
        if not times or stream.tokens() != tokens:
            raise RuntimeError(f"an answer has {stream.tokens()} tokens, not {tokens}")
    return summary([s.begin for s in streams], arrivals, tokens)


def summary(begins, arrivals, tokens):
    """Figures of a wave: when each request began, when each of its tokens arrived."""
    gaps = [b - a for times in arrivals for a, b in zip(times, times[1:])]
    first = [times[0] - begin for times, begin in zip(arrivals, begins)]
    seconds = max(times[-1] for times in arrivals) - min(begins)
    return {"tokens/s": tokens * len(arrivals) / seconds,
            "TTFT p50 ms": 1e3 * percentile(first, 0.5),
            "ITL p50 ms": 1e3 * percentile(gaps, 0.5),
            "ITL p99 ms": 1e3 * percentile(gaps, 0.99)}


def join(port, model, prompts, long_prompt, tokens):
    """A long prompt joins running streams: their longest gap from then on, and its first token."""
    runners = [Stream(port, model, prompt, tokens) for prompt in prompts]
    joiner = Stream(port, model, long_prompt, 8)
    count = len(prompts)

    def more():
        enough = all(len(s.pieces) >= 16 for s in runners[:count])
        return joiner if joiner.begin is None and enough else None

    run(runners, more=more, until=lambda: joiner.begin is not None and not joiner.open)
    return join_summary(joiner.begin, joiner.arrivals()[0],
                        [stream.arrivals() for stream in runners[:count]])


def join_summary(begin, first, arrivals):
    gaps = []
    for times in arrivals:
        if times[-1] < first:
            raise RuntimeError("a stream ended before the long prompt had its first token")
        gaps += [b - a for a, b in zip(times, times[1:]) if b > begin]
    return {"longest gap ms": 1e3 * max(gaps), "TTFT ms": 1e3 * (first - begin)}
