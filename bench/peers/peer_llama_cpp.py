"""llama.cpp, out of the source package of llama-cpp-python, built for this machine."""

import json
import os
import pathlib
import shutil
import sys
import tarfile
import tempfile

from common import CACHE, ROOT, Unavailable, output_of, say
from serving import Server, served
from works import GENERATE, PROMPTS, decode_cell

sys.path.insert(0, str(ROOT / "tools"))
import fetch_llama_cpp_source as package  # noqa: E402

FOLDER = CACHE / f"llama.cpp-{package.VERSION}"
PROGRAMS = ("llama-bench", "llama-batched-bench", "llama-quantize", "llama-server")
OPTIONS = ("CMAKE_BUILD_TYPE=Release", "GGML_NATIVE=ON", "LLAMA_CURL=OFF", "LLAMA_OPENSSL=OFF",
           "LLAMA_BUILD_TESTS=OFF", "LLAMA_BUILD_EXAMPLES=OFF", "LLAMA_BUILD_APP=OFF",
           "LLAMA_BUILD_UI=OFF", "LLAMA_USE_PREBUILT_UI=OFF")


def fetch():
    """The source tree, unpacked once."""
    source = FOLDER / "source"
    if source.exists():
        return source
    FOLDER.mkdir(parents=True, exist_ok=True)
    say(f"fetching {package.PACKAGE} {package.VERSION} (77 MB)")
    inner = f"llama_cpp_python-{package.VERSION}/vendor/llama.cpp"
    with tempfile.TemporaryDirectory(dir=FOLDER) as work:
        archive = package.download(pathlib.Path(work))
        if (actual := package.sha256(archive)) != package.SHA256:
            raise Unavailable(f"the package has the checksum {actual}, not {package.SHA256}")
        with tarfile.open(archive) as tar:
            members = [m for m in tar if m.name.startswith(inner + "/")
                       and (m.isfile() or m.isdir()) and m.name != inner + "/.git"]
            tar.extractall(work, members, filter="data")
        shutil.move(f"{work}/{inner}", source)
    return source


def build():
    """The folder of the programs, built with the compiler that builds lockstep."""
    binaries = FOLDER / "build/bin"
    stamp = FOLDER / "build/.complete"
    if stamp.exists():
        return binaries
    source = fetch()
    say("building llama.cpp (once; some minutes a core)")
    compilers = [f"CMAKE_CXX_COMPILER={os.environ.get('CXX', 'g++')}",
                 f"CMAKE_C_COMPILER={os.environ.get('CC', 'gcc')}"]
    output_of(["cmake", "-G", "Ninja", "-S", source, "-B", FOLDER / "build",
               *(f"-D{option}" for option in (*OPTIONS, *compilers))],
              log=FOLDER / "configure.log", env=dict(os.environ))
    output_of(["ninja", "-C", FOLDER / "build", "-j", os.environ.get("JOBS") or os.cpu_count(),
               *PROGRAMS], log=FOLDER / "build.log", env=dict(os.environ))
    stamp.touch()
    return binaries


class LlamaCpp:
    name = "llama.cpp"

    def __init__(self, settings):
        self.threads = settings.threads
        self.log = settings.log_folder

    def prepare(self):
        self.bin = build()

    def weights(self, weights, model):
        return weights.gguf(model)

    def run(self, file, work, words):
        if work == "prompt":
            return self.bench(file, ["-p", ",".join(map(str, PROMPTS)), "-n", 0])
        if work.startswith("decode-"):
            _, context, rows = work.split("-")
            if rows == "1":
                return self.bench(file, ["-p", 0, "-n", GENERATE, "-d", context])
            return self.batched(file, int(context), int(rows))
        return served(self.open_server(file), work, words)

    def bench(self, file, what):
        text = output_of([self.bin / "llama-bench", "-m", file, "-t", self.threads, "-fa", 1, "-r",
                          1, "-o", "json", *what])
        cells = {}
        for result in json.loads(text):
            prompt, depth = result["n_prompt"], result["n_depth"]
            cells[f"prompt {prompt}" if prompt else decode_cell(1, depth)] = result["avg_ts"]
        return cells

    def batched(self, file, context, rows):
        # The prompt is computed once and copied to every row, each of which has its own cache.
        text = output_of([self.bin / "llama-batched-bench", "-m", file, "-t", self.threads, "-tb",
                          self.threads, "-fa", "on", "-c", rows * (context + GENERATE + 128), "-npp",
                          context, "-ntg", GENERATE, "-npl", rows, "-pps", "--output-format",
                          "jsonl"])
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return {decode_cell(rows, context): lines[0]["speed_tg"]}

    def open_server(self, file):
        def command(port, clients):
            return [self.bin / "llama-server", "-m", file, "-t", self.threads, "-tb", self.threads,
                    "-fa", "on", "-np", clients, "-c", clients * 4096, "-cb", "--cache-ram", 0,
                    "--host", "127.0.0.1", "--port", port]
        return lambda clients: Server(lambda port: command(port, clients), {}, "model",
                                      self.log / "llama-server.log")
