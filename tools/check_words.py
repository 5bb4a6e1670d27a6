#!/usr/bin/env python3
"""Fails when a tracked file or a commit message ties the project to one machine or one host.

Looked for: absolute paths of somebody's machine; in files that tools read (lock files, manifests,
scripts), addresses of hosts, since where packages come from is the reader's setting; and numbers of
issues, which mean nothing outside the place where they were filed.
"""

import os
import pathlib
import re
import subprocess
import sys

MACHINE_PATH = re.compile(r"(?<![\w.~*}$])/(?:work|root|home/[a-z]\w*|Users/\w+|tmp/[a-z]{1,3})/[\w.]")
REGISTRY_HOST = re.compile(
    r"\b(?:files|registry|index|static|proxy|deb|security|repo1?|mirror)\.[a-z-]+\.(?:org|io|com|net)\b")
URL_HOST = re.compile(r"\bhttps?://([\w.-]+)")
ISSUE_NUMBER = re.compile(r"\bissues? #?\d+\b|\B#\d+\b", re.IGNORECASE)

# Names of files that tools read: a host there decides where something is fetched from.
READ_BY_TOOLS = re.compile(
    r"(?:^|/)(?:Makefile|Dockerfile|[\w.-]*requirements[\w.-]*\.txt|\.npmrc|\.ci/\w+)$"
    r"|\.(?:lock|toml|cmake|sh|yml|yaml)$|package(?:-lock)?\.json$")
LOCAL_HOSTS = {"localhost", "127.0.0.1"}
# Cargo's name for its default registry, which every Cargo.lock carries; not an address it uses.
CARGO_SOURCE = re.compile(r'^source = "registry\+')


def git(*arguments):
    return subprocess.run(["git", *arguments], check=True, capture_output=True).stdout


def faults_of_text(name, text, issue_numbers):
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{name}:{number}"
        if match := MACHINE_PATH.search(line):
            yield f"{where}: a path of one machine: {match.group(0)}"
        if CARGO_SOURCE.match(line):
            continue
        if match := REGISTRY_HOST.search(line):
            yield f"{where}: a registry's host: {match.group(0)}"
        if READ_BY_TOOLS.search(name):
            for host in URL_HOST.findall(line):
                if host not in LOCAL_HOSTS:
                    yield f"{where}: a host in a file that tools read: {host}"
        if issue_numbers and (match := ISSUE_NUMBER.search(line)):
            yield f"{where}: an issue's number: {match.group(0)}"


def self_test():
    bad = [("a.md", "see /" + "root/x.txt"), ("Cargo.lock", "url = http://" + "h.example/x"),
           ("a.md", "from registry." + "example.org"), ("commit", "mends issue" + " 3")]
    good = [("a.md", "a GGUF in ~/models/root/x; see http://h.example/x"),
            ("a.sh", "curl http://127.0.0.1:8080/health"), ("src/a.h", '#include "root/x.h"')]
    return (all(list(faults_of_text(*case, True)) for case in bad)
            and not any(list(faults_of_text(*case, True)) for case in good))


def main():
    if not self_test():
        print("check_words: self-test failed", file=sys.stderr)
        return 1
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    faults = []
    for name in filter(None, git("ls-files", "-z").decode().split("\0")):
        try:
            with open(name, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            continue  # removed, not yet committed
        if b"\0" in data[:8192]:
            continue  # not text
        faults += faults_of_text(name, data.decode("utf-8", "replace"), False)
    messages = git("log", "--format=%h%x00%B%x01").decode("utf-8", "replace")
    for entry in filter(str.strip, messages.split("\x01")):
        commit, message = entry.strip().split("\0", 1)
        faults += faults_of_text(f"commit {commit}", message, True)
    for fault in faults:
        print(f"check_words: {fault}", file=sys.stderr)
    if not faults:
        print("check_words: ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
