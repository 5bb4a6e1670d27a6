"""Prefixes on disk: what survives a restart and kill -9, and what a broken disk does to nobody."""

import concurrent.futures
import contextlib
import pathlib
import random
import resource
import signal

import httpx
import pytest

import conftest
from support import eventually, metric, metrics

BLOCK = 32
STORY = "The lighthouse keeper of number {} wrote down the weather every evening. " * 4
# Each some 400 tokens long, alike in nothing.
PROMPTS = [
    "".join(STORY.format(*(f"{n} and {i + k}" for k in range(4))) for i in range(0, 24, 4))
    for n in range(6)
]


@contextlib.contextmanager
def serving(folder, log, *flags):
    running = conftest.Server(log, "--context", "2048", "--prefix-dir", str(folder), *flags)
    try:
        running.wait_until_healthy()
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()


def complete(running, prompt, max_tokens=8):
    body = {"prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "logprobs": 2}
    answer = httpx.post(running.url + "/v1/completions", json=body, timeout=300)
    assert answer.status_code == 200, answer.text
    return answer.json()


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def whole_blocks(answer):
    return (answer["usage"]["prompt_tokens"] - 1) // BLOCK * BLOCK


def flush(running):
    return httpx.post(running.url + "/admin/cache/flush", timeout=300)


def counter(running, name):
    return metric(metrics(httpx.get(running.url + "/metrics").text), "lockstep_prefix_disk_" + name)


def entries(folder):
    return list(pathlib.Path(folder).glob("*.lsprefix"))


@pytest.fixture(scope="module")
def cold(tmp_path_factory):
    """What the prompts' answers are where nothing is kept."""
    log = tmp_path_factory.mktemp("cold") / "log"
    running = conftest.Server(log, "--context", "2048", "--no-prefix-cache")
    try:
        running.wait_until_healthy()
        answers = [complete(running, prompt) for prompt in PROMPTS]
    finally:
        assert running.stop() == 0
    assert len({answer["usage"]["prompt_tokens"] for answer in answers}) >= 1
    return [answer["choices"] for answer in answers]


def test_what_was_flushed_survives_kill_9(tmp_path, cold):
    folder = tmp_path / "prefixes"
    with serving(folder, tmp_path / "log1") as running:
        answer = complete(running, PROMPTS[0])
        assert cached(answer) == 0
        done = flush(running)
        assert done.status_code == 200, done.text
        assert done.json()["status"] == "ok"
        assert done.json()["entries"] == len(entries(folder)) >= whole_blocks(answer) // BLOCK
        assert done.json()["bytes"] == sum(file.stat().st_size for file in entries(folder))
        running.process.send_signal(signal.SIGKILL)
        running.process.wait()
    with serving(folder, tmp_path / "log2") as running:
        answer = complete(running, PROMPTS[0])
        assert answer["choices"] == cold[0]
        assert cached(answer) == whole_blocks(answer)
        assert counter(running, "hits_total") == 1
        assert counter(running, "tokens_total") == cached(answer)
        assert counter(running, "corrupt_total") == 0
        assert complete(running, PROMPTS[1])["choices"] == cold[1]
        assert counter(running, "misses_total") == 1
        # An end in order keeps what is new.
        assert running.stop() == 0, running.log()
    with serving(folder, tmp_path / "log3") as running:
        answer = complete(running, PROMPTS[1])
        assert answer["choices"] == cold[1]
        assert cached(answer) == whole_blocks(answer)


def test_killed_at_any_moment(tmp_path, cold):
    """Killed while it writes, again and again, it never gives another byte, nor loses what it had."""
    folder = tmp_path / "prefixes"
    chance = random.Random(5)
    kept = 0
    for round_ in range(8):
        with serving(folder, tmp_path / f"log{round_}") as running:
            assert not list(folder.glob("*.tmp"))
            before = len(entries(folder))
            assert before >= kept
            more = before + chance.randint(1, 9)
            order = chance.sample(range(len(PROMPTS)), 3)
            with concurrent.futures.ThreadPoolExecutor(len(order)) as pool:
                answers = {n: pool.submit(complete, running, PROMPTS[n]) for n in order}
                # As soon as so many are there, the next one most likely in the midst.
                eventually(
                    lambda: len(entries(folder)) >= more
                    or all(answer.done() for answer in answers.values())
                )
                running.process.send_signal(signal.SIGKILL)
                running.process.wait()
            kept = len(entries(folder))
            for n, answer in answers.items():
                try:
                    assert answer.result()["choices"] == cold[n]
                except httpx.TransportError:
                    pass  # killed before it was answered
    hits = 0
    with serving(folder, tmp_path / "log") as running:
        for n, prompt in enumerate(PROMPTS):
            answer = complete(running, prompt)
            assert answer["choices"] == cold[n]
            hits += cached(answer)
        assert hits > 10 * BLOCK
        assert counter(running, "tokens_total") == hits
        assert counter(running, "corrupt_total") == 0
        assert running.stop() == 0


def test_spoilt_files_are_a_miss(tmp_path, cold):
    folder = tmp_path / "prefixes"
    with serving(folder, tmp_path / "log1") as running:
        complete(running, PROMPTS[0])
        assert flush(running).status_code == 200
        assert running.stop() == 0
    for number, file in enumerate(sorted(entries(folder))):
        if number % 3 == 0:
            file.write_bytes(file.read_bytes()[: number * 100])
        elif number % 3 == 1:
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= 1
            file.write_bytes(data)
    (folder / "notes.txt").write_text("not ours")
    with serving(folder, tmp_path / "log2") as running:
        for _ in range(2):
            assert complete(running, PROMPTS[0])["choices"] == cold[0]
        assert counter(running, "corrupt_total") >= 1
        assert running.stop() == 0
    assert (folder / "notes.txt").read_text() == "not ours"


def test_a_full_disk_fails_no_request(tmp_path, cold):
    with serving(tmp_path / "prefixes", tmp_path / "log") as running:
        # No file may grow past this: as good as no space left.
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
        for n in range(3):
            assert complete(running, PROMPTS[n])["choices"] == cold[n]
        failed = flush(running)
        assert failed.status_code == 500, failed.text
        assert "could not be written" in failed.json()["error"]["message"]
        assert counter(running, "writes_failed_total") > 10
        assert not entries(tmp_path / "prefixes")
        assert running.log().count("could not be kept") == 1
        # What is in memory is there all the same.
        assert cached(complete(running, PROMPTS[0])) > 0
        assert running.stop() == 0


def test_the_limit_is_kept(tmp_path, cold):
    gib = 20 / 1024
    folder = tmp_path / "prefixes"
    with serving(folder, tmp_path / "log", "--prefix-dir-gib", str(gib)) as running:
        for n, prompt in enumerate(PROMPTS):
            assert complete(running, prompt)["choices"] == cold[n]
        assert flush(running).status_code == 200
        size = sum(file.stat().st_size for file in entries(folder))
        assert 0.5 * gib * 2**30 < size <= gib * 2**30
        assert size == counter(running, "bytes")
        assert counter(running, "evictions_total") > 0
        assert running.stop() == 0


def test_flush_needs_a_folder_and_a_key(server, tmp_path):
    refused = flush(server)
    assert refused.status_code == 400
    assert "--prefix-dir" in refused.json()["error"]["message"]
    with serving(tmp_path / "prefixes", tmp_path / "log", "--api-key", "secret") as running:
        assert flush(running).status_code == 401
        allowed = httpx.post(
            running.url + "/admin/cache/flush", headers={"Authorization": "Bearer secret"}
        )
        assert allowed.status_code == 200
        assert running.stop() == 0


def fails_to_start(log, *flags):
    running = conftest.Server(log, "--context", "2048", *flags)
    try:
        assert running.process.wait(conftest.START_SECONDS) != 0
    finally:
        running.process.kill()
    return running.log()


def test_a_folder_that_cannot_be_one_is_an_error_at_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in [tmp_path / "file", tmp_path / "file" / "below", "/proc/prefixes"]:
        log = fails_to_start(tmp_path / "log", "--prefix-dir", str(folder))
        assert "--prefix-dir" in log and str(folder) in log, log
    log = fails_to_start(
        tmp_path / "log", "--prefix-dir", str(tmp_path / "ok"), "--no-prefix-cache"
    )
    assert "--no-prefix-cache" in log
    with serving(tmp_path / "shared", tmp_path / "log1") as running:
        log = fails_to_start(tmp_path / "log2", "--prefix-dir", str(tmp_path / "shared"))
        assert "another process" in log, log
        assert running.stop() == 0
