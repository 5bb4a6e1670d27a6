"""vLLM's CPU build, for bf16 weights, where it installs."""

import json

from common import HERE, environment, output_of, python_environment
from serving import Server, served
from weights import FOLDER
from works import MODELS


class Vllm:
    name = "vllm"

    def __init__(self, settings):
        self.threads = settings.threads
        self.log = settings.log_folder
        self.environment = {
            "VLLM_CPU_KVCACHE_SPACE": "3", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CPU_OMP_THREADS_BIND": f"0-{self.threads - 1}"}

    def prepare(self):
        self.python = python_environment("vllm")
        output_of([self.python, "-c", "import vllm._C"], env=environment(**self.environment))

    def weights(self, weights, model):
        name, kind = MODELS[model]
        return weights.hf(name) if kind == "bf16" else None

    def run(self, folder, work, words):
        if work == "prompt" or work.startswith("decode-"):
            text = output_of([self.python, HERE / "vllm_worker.py", folder, work,
                              FOLDER / "words.json"], log=self.log / "vllm.log",
                             env=environment(**self.environment))
            return json.loads(text.splitlines()[-1])
        return served(self.open_server(folder), work, words)

    def open_server(self, folder):
        def command(port, clients):
            return [self.python.with_name("vllm"), "serve", folder, "--served-model-name", "model",
                    "--dtype", "bfloat16", "--max-model-len", 4096, "--max-num-seqs", clients,
                    "--no-enable-prefix-caching", "--host", "127.0.0.1", "--port", port]
        return lambda clients: Server(lambda port: command(port, clients), self.environment,
                                      "model", self.log / "vllm-serve.log", timeout=600)
