"""What the parts of the comparison share: folders, child processes, pinned environments."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = pathlib.Path(
    os.environ.get("LOCKSTEP_CACHE") or pathlib.Path.home() / ".cache/lockstep") / "peers"

# Settings of the caller's shell that would change how a child runs.
FOREIGN = ("OPENBLAS_", "OMP_", "KMP_", "MKL_", "GGML_", "LLAMA_", "VLLM_", "OV_", "LOCKSTEP_")


class Unavailable(Exception):
    """A peer, or one of its measurements, that cannot be had here; the message says why."""


def say(text):
    print(f"bench-peers: {text}", file=sys.stderr, flush=True)


def environment(**extra):
    """The environment of a child, without what would change its speed."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
    return kept | extra


def output_of(command, log=None, **options):
    """Runs a command to its end and returns its standard output; a failure is Unavailable."""
    command = [str(part) for part in command]
    options.setdefault("env", environment())
    options.setdefault("timeout", 3600)
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **options)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} took longer than {options['timeout']} s") from None
    if log:
        pathlib.Path(log).write_text(result.stdout + result.stderr)
    if result.returncode != 0:
        last = (result.stderr or result.stdout).strip().splitlines()[-3:]
        raise Unavailable(f"{' '.join(command[:3])} failed ({result.returncode}): "
                          + " | ".join(last) + (f"; see {log}" if log else ""))
    return result.stdout


def python_environment(name):
    """The interpreter of a virtual environment that holds requirements-NAME.txt and nothing else.

    The file lists every package that is needed, so that pip resolves nothing by itself.
    """
    requirements = HERE / f"requirements-{name}.txt"
    key = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = CACHE / f"venv-{name}-{key}"
    python = folder / "bin/python"
    if (folder / ".complete").exists():
        return python
    say(f"making {folder} (once)")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    output_of([sys.executable, "-m", "venv", folder])
    output_of([python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
               "--no-deps", "--requirement", requirements], log=f"{folder}.log",
              env=dict(os.environ))
    (folder / ".complete").touch()
    return python


def process_tree(pid):
    """The process and all that it started."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    tree = [pid]
    for member in tree:
        tree += [child for child, parent in parents.items() if parent == member]
    return tree


def peak_memory_mib(pid):
    """The sum of the peaks of resident memory (VmHWM) of a process and all that it started."""
    total = 0
    for member in process_tree(pid):
        try:
            status = pathlib.Path(f"/proc/{member}/status").read_text()
        except OSError:
            continue
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                total += int(line.split()[1])
    return total / 1024


def stop(process):
    """Ends a child that leads its own session, and all that it started."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        pass
    process.wait()
    time.sleep(0.2)
