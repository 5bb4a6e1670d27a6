"""One work of OpenVINO GenAI, in its own environment and process; prints the cells as JSON.

    openvino_worker.py MODEL_FOLDER WORK WORDS.json THREADS STEP_TOKENS BEGIN

BEGIN is the time.monotonic() at which the process was started.
"""

import json
import os
import pathlib
import sys
import time

import numpy
import openvino
import openvino_genai

import http_load
from common import peak_memory_mib
from serving import ANSWER, LONG_PROMPT, RUNNING, RUNNING_ANSWER, prompts_of
from works import GENERATE, PROMPTS, decode_cell


class Pipeline:
    def __init__(self, folder, threads, step_tokens, rows, tokens):
        config = openvino_genai.SchedulerConfig()
        config.max_num_batched_tokens = step_tokens
        config.max_num_seqs = max(rows, 1)
        config.dynamic_split_fuse = True
        config.enable_prefix_caching = False
        # Blocks of 32 tokens, enough for every row.
        config.num_kv_blocks = rows * ((tokens + 31) // 32 + 2)
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(
            str(folder), config, "CPU", {"INFERENCE_NUM_THREADS": threads})
        self.requests = 0

    def add(self, prompt, tokens):
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = tokens
        config.ignore_eos = True
        config.do_sample = False
        ids = openvino.Tensor(numpy.array([prompt], numpy.int64))
        self.requests += 1
        return Request(self.pipeline.add_request(self.requests, ids, config))

    def step(self, requests):
        self.pipeline.step()
        now = time.monotonic()
        for request in requests:
            request.read(now)

    def finish(self, requests):
        while not all(r.done for r in requests):
            self.step(requests)


class Request:
    def __init__(self, handle):
        self.handle = handle
        self.begin = time.monotonic()
        self.arrivals = []

    def read(self, now):
        while self.handle.can_read():
            for output in self.handle.read().values():
                self.arrivals += [now] * len(output.generated_ids)

    @property
    def done(self):
        return self.handle.get_status() != openvino_genai.GenerationStatus.RUNNING


def prompt(open_pipeline, words):
    cells = {}
    pipe = open_pipeline(1, max(PROMPTS) + 64)
    # The first prompt warms up.
    for length in (PROMPTS[0], *PROMPTS):
        request = pipe.add(words[:length], 1)
        pipe.finish([request])
        cells[f"prompt {length}"] = length / (request.arrivals[0] - request.begin)
    return cells


def decode(open_pipeline, words, rows, context):
    # Early rows decode while late ones still read their prompts: only the steps in which all
    # decode count, and there is room for the ones before.
    room = GENERATE + 8 + rows * context // 256
    pipe = open_pipeline(rows, context + room)
    pipe.finish([pipe.add(words[:PROMPTS[0] if context > PROMPTS[0] else context], 4)])
    requests = [pipe.add(p, room) for p in prompts_of(words, rows, context)]
    while not all(r.arrivals for r in requests):
        pipe.step(requests)
    begin = time.monotonic()
    for _ in range(GENERATE):
        pipe.step(requests)
    return {decode_cell(rows, context): rows * GENERATE / (time.monotonic() - begin)}


def serve(open_pipeline, words, clients):
    pipe = open_pipeline(clients, 4096)
    pipe.finish([pipe.add(p, 16) for p in prompts_of(words, clients, at=4000)])
    requests = [pipe.add(p, ANSWER) for p in prompts_of(words, clients)]
    pipe.finish(requests)
    figures = http_load.summary([r.begin for r in requests], [r.arrivals for r in requests], ANSWER)
    figures["peak memory MiB"] = peak_memory_mib(os.getpid())
    return {f"serve {clients}: {name}": value for name, value in figures.items()}


def join(open_pipeline, words):
    pipe = open_pipeline(8, 4096)
    pipe.finish([pipe.add(p, 16) for p in prompts_of(words, 8, at=4000)])
    requests = [pipe.add(p, RUNNING_ANSWER) for p in prompts_of(words, RUNNING)]
    while not all(len(r.arrivals) >= 16 for r in requests):
        pipe.step(requests)
    joiner = pipe.add(words[-LONG_PROMPT:], 8)
    while not joiner.done:
        pipe.step([*requests, joiner])
    figures = http_load.join_summary(joiner.begin, joiner.arrivals[0],
                                     [r.arrivals for r in requests])
    return {f"join: {name}": value for name, value in figures.items()}


def start(open_pipeline, words, begin):
    pipe = open_pipeline(8, 4096)
    request = pipe.add(words[:8], 1)
    pipe.finish([request])
    return {"start to first token s": request.arrivals[0] - begin}


def main():
    folder, work, words, threads, step_tokens, begin = sys.argv[1:]
    words = json.loads(pathlib.Path(words).read_text())

    def open_pipeline(rows, tokens):
        return Pipeline(folder, int(threads), int(step_tokens), rows, tokens)

    if work == "prompt":
        cells = prompt(open_pipeline, words)
    elif work.startswith("decode-"):
        _, context, rows = work.split("-")
        cells = decode(open_pipeline, words, int(rows), int(context))
    elif work.startswith("serve-"):
        cells = serve(open_pipeline, words, int(work.removeprefix("serve-")))
    elif work == "join":
        cells = join(open_pipeline, words)
    else:
        cells = start(open_pipeline, words, float(begin))
    print(json.dumps(cells))


if __name__ == "__main__":
    main()
