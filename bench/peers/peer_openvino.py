"""OpenVINO GenAI, in process: its continuous batching pipeline over weights that it compressed."""

import json
import time

from common import CACHE, HERE, environment, output_of, python_environment
from weights import FOLDER, once
from works import MODELS

# What the kinds of weights become, as `openvino_convert.py` names them.
KINDS = {"q4_0": "int4", "q8_0": "int8", "bf16": "fp16"}


class OpenVino:
    name = "openvino"
    step_tokens = 512

    def __init__(self, settings):
        self.threads = settings.threads

    def prepare(self):
        self.python = python_environment("openvino")

    def weights(self, weights, model):
        name, kind = MODELS[model]
        f16 = weights.f16(name)

        def make(path):
            output_of([self.python, HERE / "openvino_convert.py", f16, KINDS[kind], path],
                      log=CACHE / "logs/openvino-convert.log")
        return once(FOLDER / name / f"openvino-{KINDS[kind]}", make)

    def run(self, folder, work, words):
        del words  # read from the file that they came from
        return json.loads(output_of(
            [self.python, HERE / "openvino_worker.py", folder, work, FOLDER / "words.json",
             self.threads, self.step_tokens, time.monotonic()],
            log=CACHE / f"logs/{self.name}.log", env=environment()).splitlines()[-1])


class OpenVinoShortSteps(OpenVino):
    """With steps of 128 tokens: running streams wait less, a prompt longer."""

    name = "openvino-128"
    step_tokens = 128
    works = ("serve-8", "join")
