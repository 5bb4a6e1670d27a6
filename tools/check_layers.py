#!/usr/bin/env python3
"""Fails on an #include under src/ that the layers do not allow.

The table is the one place that says who may include whom. A unit is a folder of src/ or, where a
folder has parts with different rules, a folder within it or a single header. An include belongs to
the longest unit that holds its path; every unit may include itself.
"""

import pathlib
import re
import sys
import tempfile

ANYTHING = ["*"]

# unit -> the units it may include. Lowest first; docs/architecture.md tells the why.
ALLOWED = {
    "base": [],
    "platform": ["base"],
    "core": ["base"],
    "kernels": ["platform", "base"],
    "quant": ["kernels", "platform", "base"],
    "weights": ["platform", "base"],
    # Bookkeeping (blocks, prefixes, policies, admission) knows nothing of bytes; the stores hold
    # them. The engine asks the bookkeeping and never names a kind.
    "cache": ["cache/kinds", "core", "base"],
    "cache/kinds": ["cache", "core", "base"],
    # The bytes of prefixes on disk, behind cache/prefix_store.h.
    "cache/disk": ["cache", "platform", "core", "base"],
    "model": ["quant", "weights", "kernels", "platform", "core", "base"],
    "sampling": ["kernels", "core", "base"],
    "text": ["core", "base"],
    # Grammars are compiled for what each token stands for.
    "grammar": ["text", "core", "base"],
    "executor": ["core", "base"],
    "executor/executor.h": ["core", "base"],
    "executor/fake": ["executor", "executor/executor.h", "core", "base"],
    "executor/cpu": ["executor", "executor/executor.h", "model", "sampling", "quant", "weights",
                     "kernels", "platform", "core", "base"],
    "engine": ["executor/executor.h", "cache", "text", "grammar", "core", "base"],
    "api": ["engine", "text", "grammar", "core", "base"],
    "server": ["api", "engine", "core", "base"],
    "apps": ANYTHING,
}

# What a unit's tests (foo_test.cc, and the helpers in its folder testing/) may include besides. The
# helpers may be included by tests alone.
ALLOWED_IN_TESTS = {
    "engine": ["executor/fake"],
    "api": ["executor/fake"],
    "server": ["executor/fake", "text"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def unit_of(path):
    """The longest unit that holds `path` (relative to src/), or None."""
    parts = path.split("/")
    for count in range(len(parts), 0, -1):
        prefix = "/".join(parts[:count])
        if prefix in ALLOWED:
            return prefix
    return None


def is_test(path):
    return path.endswith("_test.cc") or "/testing/" in path


def check(src):
    """The faults of the tree at `src`, as lines of text."""
    faults = []
    files = sorted(p for p in src.rglob("*") if p.suffix in {".h", ".cc", ".inc"} and p.is_file())
    for file in files:
        path = file.relative_to(src).as_posix()
        unit = unit_of(path)
        if unit is None:
            faults.append(f"{path}: its folder is not in the table of tools/check_layers.py")
            continue
        allowed = set(ALLOWED[unit]) | {unit}
        if is_test(path):
            allowed |= set(ALLOWED_IN_TESTS.get(unit, []))
        if "*" in allowed:
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            included = match.group(1)
            beside = file.parent / included
            if not (src / included).exists() and beside.exists():
                included = beside.resolve().relative_to(src.resolve()).as_posix()
            if "/" not in included or not (src / included.split("/")[0]).is_dir():
                continue  # not of this tree: a library's header or a generated one
            target = unit_of(included)
            if "/testing/" in included and not is_test(path):
                faults.append(f"{path}:{number}: only tests may include {included}")
            elif target not in allowed:
                faults.append(f"{path}:{number}: {unit} may not include {included}"
                              f" ({target or 'unknown folder'})")
    return faults


def self_test():
    """Plants violations in a small tree and sees each of them found, and nothing else."""
    tree = {
        "base/status.h": "",
        "base/status.cc": '#include "base/status.h"\n',
        "base/bad.cc": '#include "core/types.h"\n',
        "core/types.h": '#include "base/status.h"\n',
        "executor/executor.h": '#include "core/types.h"\n',
        "executor/cpu/cpu.h": '#include "executor/executor.h"\n#include "model/model.h"\n',
        "executor/fake/fake.h": '#include "executor/executor.h"\n',
        "model/model.h": '#include "quant/format.h"\n#include <vector>\n',
        "model/bad.cc": '#include "cache/kv_manager.h"\n',
        "cache/kv_manager.h": '#include "core/types.h"\n',
        "cache/kinds/paged.h": '#include "cache/kv_manager.h"\n',
        "quant/format.h": '#include "kernels/gemm.h"\n',
        "engine/engine.h": '#include "executor/executor.h"\n#include "cache/kv_manager.h"\n',
        "engine/engine_test.cc": '#include "executor/fake/fake.h"\n',
        "engine/testing/testing.h": '#include "executor/fake/fake.h"\n',
        "engine/helped_test.cc": '#include "engine/testing/testing.h"\n',
        "engine/bad_helper.cc": '#include "engine/testing/testing.h"\n',
        "engine/bad.cc": '  #  include "executor/fake/fake.h"\n',
        "engine/bad_test.cc": '#include "executor/cpu/cpu.h"\n',
        "engine/bad_store.cc": '#include "cache/kinds/paged.h"\n',
        "server/bad.cc": '#include "../model/model.h"\n',
        "apps/main.cc": '#include "executor/cpu/cpu.h"\n#include "server/bad.cc"\n',
        "unknown/x.h": "",
    }
    expected = {"base/bad.cc", "model/bad.cc", "engine/bad.cc", "engine/bad_test.cc",
                "engine/bad_store.cc", "engine/bad_helper.cc", "server/bad.cc", "unknown/x.h"}
    with tempfile.TemporaryDirectory() as folder:
        src = pathlib.Path(folder, "src")
        for path, text in tree.items():
            file = src / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        found = {fault.split(":")[0] for fault in check(src)}
    if found != expected:
        print(f"check_layers: self-test: missed {sorted(expected - found)}, "
              f"wrongly found {sorted(found - expected)}", file=sys.stderr)
        return 1
    return 0


def main():
    if self_test() != 0:
        return 1
    faults = check(pathlib.Path(__file__).resolve().parent.parent / "src")
    for fault in faults:
        print(f"check_layers: {fault}", file=sys.stderr)
    if not faults:
        print("check_layers: ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
