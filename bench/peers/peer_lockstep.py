"""lockstep itself, the release build of this tree."""

import json

from common import ROOT, output_of
from serving import Server, served
from works import GENERATE, PROMPTS, decode_cell


class Lockstep:
    name = "lockstep"

    def __init__(self, settings):
        self.threads = settings.threads
        self.log = settings.log_folder
        self.binary = settings.lockstep or ROOT / "build/lockstep"

    def prepare(self):
        output_of([self.binary, "--version"])

    def weights(self, weights, model):
        return weights.gguf(model)

    def run(self, file, work, words):
        if work == "prompt":
            # The first prompt warms up and is not counted.
            return self.bench(file, [PROMPTS[0], *PROMPTS], 1, 1, 1)
        if work.startswith("decode-"):
            _, context, rows = work.split("-")
            return self.bench(file, [PROMPTS[0]], int(rows), int(context), GENERATE)
        return served(self.open_server(file), work, words)

    def bench(self, file, prompts, rows, context, generate):
        results = json.loads(output_of(
            [self.binary, "bench", file, "--threads", self.threads, "--repeat", 1, "--json",
             "--prompt", ",".join(map(str, prompts)), "--rows", rows, "--context", context,
             "--generate", generate]))
        cells = {}
        for result in results[1:]:
            if result["work"] == "prompt":
                cells[f"prompt {result['tokens']}"] = result["tokens_per_s"]
            elif generate == GENERATE:
                cells[decode_cell(rows, context)] = result["tokens_per_s"]
        return cells

    def open_server(self, file):
        def command(port, clients):
            return [self.binary, "serve", "--model", file, "--threads", self.threads, "--max-rows",
                    clients, "--context", 4096, "--any-model-name", "--host", "127.0.0.1",
                    "--port", port]
        return lambda clients: Server(lambda port: command(port, clients), {}, "model",
                                      self.log / "lockstep-serve.log")
