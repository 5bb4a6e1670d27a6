#!/usr/bin/env python3
"""check_wide_registers.py BINARY: fails when code outside the kernels uses ymm or zmm registers.

A unit compiled for a newer CPU than the one it runs on crashes there, and a shared inline function
can carry such code into places nobody looked at. So only functions of the ISA namespaces may use
wide registers, and libraries that choose at run time.
"""

import re
import subprocess
import sys

# Demangled symbols that may use wide registers, with the reason.
ALLOWED = [
    (re.compile(r"\blockstep::kernels::(?:avx2|avx512)::"), "ours, entered through the table"),
    (re.compile(r"\bmemchr::|\baho_corasick::"), "Rust's string search, which asks the CPU first"),
    (re.compile(r"\bsimdjson::(?:haswell|icelake)::"), "simdjson, which asks the CPU first"),
]
SYMBOL = re.compile(r"^[0-9a-f]+ <(.+)>:$")
WIDE = re.compile(r"%[yz]mm\d")


def main():
    binary = sys.argv[1]
    # The GNU demangler leaves Rust's newer names alone without --demangle=auto.
    process = subprocess.Popen(
        ["objdump", "--disassemble", "--no-show-raw-insn", "--demangle=auto", binary],
        stdout=subprocess.PIPE, text=True, errors="replace")
    symbol, symbols, wide = "", 0, {}
    for line in process.stdout:
        if match := SYMBOL.match(line):
            symbol = match.group(1)
            symbols += 1
        elif "mm" in line and WIDE.search(line):
            wide[symbol] = wide.get(symbol, 0) + 1
    if process.wait() != 0 or symbols == 0:
        print(f"check_wide_registers: cannot disassemble {binary}", file=sys.stderr)
        return 1
    faults = {name: count for name, count in wide.items()
              if not any(pattern.search(name) for pattern, _ in ALLOWED)}
    for name, count in sorted(faults.items()):
        print(f"check_wide_registers: {count} instructions in {name}", file=sys.stderr)
    if not faults:
        print(f"check_wide_registers: ok, {len(wide)} of {symbols} functions use wide registers")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
