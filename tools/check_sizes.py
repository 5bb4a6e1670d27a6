#!/usr/bin/env python3
"""Fails on a source file of more than 400 lines, and prints the longest ones.

A long file is a room with two purposes: split it. An exception needs a reason, below.
"""

import pathlib
import subprocess
import sys

LIMIT = 400
LONGEST_SHOWN = 5
SUFFIXES = {".h", ".cc", ".rs", ".py", ".sh", ".ts", ".tsx", ".cmake"}

# Path -> why it may be longer.
EXCEPTIONS = {}


def source_files(root):
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        path = pathlib.Path(root, name)
        if path.suffix in SUFFIXES and path.is_file():
            yield name, path


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    sizes = sorted(((len(path.read_bytes().splitlines()), name)
                    for name, path in source_files(root)), reverse=True)
    for lines, name in sizes[:LONGEST_SHOWN]:
        print(f"check_sizes: {lines:5} {name}")
    faults = [f"{name}: {lines} lines, more than {LIMIT}" for lines, name in sizes
              if lines > LIMIT and name not in EXCEPTIONS]
    stale = [f"{name}: listed as an exception, but not there or short enough"
             for name in EXCEPTIONS if dict((n, l) for l, n in sizes).get(name, 0) <= LIMIT]
    for fault in faults + stale:
        print(f"check_sizes: {fault}", file=sys.stderr)
    return 1 if faults + stale else 0


if __name__ == "__main__":
    sys.exit(main())
