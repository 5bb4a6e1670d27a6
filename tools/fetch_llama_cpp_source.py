#!/usr/bin/env python3
"""Fetches the tokenizer vectors and chat templates that the text tests compare with.

They are the vocabulary-only GGUF files with their *.inp and *.out, and the chat templates, of the
source package of llama-cpp-python. The package is downloaded with pip, checked, and only those files
are kept, under ${LOCKSTEP_CACHE:-~/.cache/lockstep}/llama-cpp-python-VERSION/models. Prints that
folder. A second run finds it there and downloads nothing.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

PACKAGE = "llama-cpp-python"
VERSION = "0.3.36"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
PREFIX = f"llama_cpp_python-{VERSION}/vendor/llama.cpp/models/"


def wanted(name):
    """The path below models/ of a member to keep, or None."""
    if not name.startswith(PREFIX):
        return None
    path = name[len(PREFIX):]
    if path.startswith("templates/") and path.endswith(".jinja") and path.count("/") == 1:
        return path
    vocabulary = "/" not in path and path.startswith("ggml-vocab-")
    return path if vocabulary and path.endswith((".gguf", ".inp", ".out")) else None


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(folder):
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n")
    command = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--no-binary", ":all:",
               "--no-cache-dir", "--require-hashes", "--requirement", str(requirements), "--dest",
               str(folder)]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    archives = list(folder.glob("*.tar.gz"))
    if len(archives) != 1:
        sys.exit(f"fetch_llama_cpp_source: pip could not download {PACKAGE} {VERSION} "
                 f"(exit code {result.returncode}); see above")
    return archives[0]


def extract(archive, target):
    count = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            path = wanted(member.name)
            if path is None or not member.isfile():
                continue
            destination = target / path
            destination.parent.mkdir(parents=True, exist_ok=True)
            with tar.extractfile(member) as source, open(destination, "wb") as sink:
                shutil.copyfileobj(source, sink)
            count += 1
    return count


def main():
    cache = os.environ.get("LOCKSTEP_CACHE") or os.path.expanduser("~/.cache/lockstep")
    root = pathlib.Path(cache) / f"{PACKAGE}-{VERSION}"
    models = root / "models"
    stamp = root / ".complete"
    if stamp.exists() and stamp.read_text().strip() == SHA256:
        print(models)
        return
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".fetch.") as work:
        print(f"fetch_llama_cpp_source: fetching {PACKAGE} {VERSION} (77 MB)", file=sys.stderr)
        archive = download(pathlib.Path(work))
        if (actual := sha256(archive)) != SHA256:
            sys.exit(f"fetch_llama_cpp_source: the package has the checksum {actual}, not {SHA256}")
        count = extract(archive, pathlib.Path(work) / "models")
        if count < 100:
            sys.exit(f"fetch_llama_cpp_source: the package holds only {count} of the files")
        shutil.rmtree(models, ignore_errors=True)
        os.replace(pathlib.Path(work) / "models", models)
    stamp.write_text(SHA256 + "\n")
    print(models)


if __name__ == "__main__":
    main()
