#!/usr/bin/env python3
"""check_wide_registers.py BINARY: fails when code outside the kernels needs AVX or wide registers.

A unit compiled for a newer CPU than the one it runs on crashes there, and a shared inline function
can carry such code into places nobody looked at. So only functions of the ISA namespaces may use
ymm and zmm registers or AVX's encodings of xmm ones, and libraries that ask the CPU at run time.
"""

import re
import subprocess
import sys

# Demangled symbols that may, with the reason.
ALLOWED = [
    (re.compile(r"\blockstep::kernels::(?:avx2|avx512)::"), "ours, entered through the table"),
    (re.compile(r"\blockstep::bench::(?:avx2|avx512)::"), "what measures the limits of a table"),
    (re.compile(r"\b(?:memchr|aho_corasick)::"), "Rust's string search, which asks the CPU first"),
    (re.compile(r"\bsimdjson::(?:haswell|icelake)::"), "simdjson, which asks the CPU first"),
    (re.compile(r"\brand_chacha::guts::\w+::impl_avx2?$"), "Rust's ChaCha, which asks the CPU first"),
    (re.compile(r"\bcore::core_arch::x86::"), "Rust's intrinsics, which only such code can call"),
]
SYMBOL = re.compile(r"^[0-9a-f]+ <(.+)>:$")
# An operand, or a mnemonic of AVX: they all begin with v, as do a few system instructions.
WIDE = re.compile(r"%[yz]mm\d|^\s*[0-9a-f]+:\s+v(?!er[rw]\b|m[cflpwx])[a-z]")


def wide_functions(binary):
    """(symbol -> instructions that need AVX, number of symbols)."""
    process = subprocess.Popen(
        ["objdump", "--disassemble", "--no-show-raw-insn", "--demangle=auto", binary],
        stdout=subprocess.PIPE, text=True, errors="replace")
    symbol, symbols, wide = "", 0, {}
    for line in process.stdout:
        if match := SYMBOL.match(line):
            symbol = match.group(1)
            symbols += 1
        elif WIDE.search(line):
            wide[symbol] = wide.get(symbol, 0) + 1
    if process.wait() != 0 or symbols == 0:
        sys.exit(f"check_wide_registers: cannot disassemble {binary}")
    return wide, symbols


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wide, symbols = wide_functions(sys.argv[1])
    faults = {name: count for name, count in wide.items()
              if not any(pattern.search(name) for pattern, _ in ALLOWED)}
    for name, count in sorted(faults.items()):
        print(f"check_wide_registers: {count} instructions in {name}", file=sys.stderr)
    if not faults:
        print(f"check_wide_registers: ok, {len(wide)} of {symbols} functions need AVX")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
