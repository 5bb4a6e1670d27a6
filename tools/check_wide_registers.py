#!/usr/bin/env python3
"""check_wide_registers.py BINARY: fails when code outside the kernels needs AVX or wide registers,
or a kernel the instructions of a newer CPU than its table is for.

A unit compiled for a newer CPU than the one it runs on crashes there, and a shared inline function
can carry such code into places nobody looked at. So only functions of the ISA namespaces may use
ymm and zmm registers or AVX's encodings of xmm ones, and libraries that ask the CPU at run time.
Of the ISA namespaces, each may use its own set: on x86-64 and, in a cross build, on AArch64.
"""

import re
import struct
import subprocess
import sys

# Demangled symbols of libraries that may use anything, with the reason.
ALLOWED = [
    (re.compile(r"\b(?:memchr|aho_corasick)::"), "Rust's string search, which asks the CPU first"),
    (re.compile(r"\bsimdjson::(?:haswell|icelake)::"), "simdjson, which asks the CPU first"),
    (re.compile(r"\brand_chacha::guts::\w+::impl_avx2?$"), "Rust's ChaCha, which asks the CPU first"),
    (re.compile(r"\bcore::core_arch::x86::"), "Rust's intrinsics, which only such code can call"),
]
# By the ELF header's machine: the disassembler, and what instructions which namespaces may use. AVX
# is an operand or a mnemonic: they all begin with v, as do a few system instructions.
MACHINES = {
    62: ("objdump", [
        (r"%zmm\d|\{%k\d\}", ("avx512",)),
        (r"\bvpdp", ("avxvnni", "avx512")),
        (r"%[yz]mm\d|^\s*[0-9a-f]+:\s+v(?!er[rw]\b|m[cflpwx])[a-z]", ("avx2", "avxvnni", "avx512")),
    ]),
    183: ("aarch64-linux-gnu-objdump", [
        (r"\t(?:smmla|ummla|usmmla|usdot|sudot)\s+v", ("neon_i8mm",)),
        (r"\t[su]dot\s+v", ("neon", "neon_i8mm")),
    ]),
}
NAMESPACE = re.compile(r"\blockstep::(?:kernels|bench)::(\w+)::")
SYMBOL = re.compile(r"^[0-9a-f]+ <(.+)>:$")


def machine(binary):
    header = open(binary, "rb").read(20)
    number = struct.unpack_from("<H", header, 18)[0] if header[:4] == b"\x7fELF" else None
    if number not in MACHINES:
        sys.exit(f"check_wide_registers: no program of a known CPU: {binary}")
    return MACHINES[number]


def special_functions(binary):
    """({(symbol, namespaces that may): instructions}, number of symbols)."""
    objdump, rules = machine(binary)
    rules = [(re.compile(pattern), namespaces) for pattern, namespaces in rules]
    process = subprocess.Popen(
        [objdump, "--disassemble", "--no-show-raw-insn", "--demangle=auto", binary],
        stdout=subprocess.PIPE, text=True, errors="replace")
    symbol, symbols, special = "", 0, {}
    for line in process.stdout:
        if match := SYMBOL.match(line):
            symbol = match.group(1)
            symbols += 1
            continue
        for pattern, namespaces in rules:
            if pattern.search(line):
                key = symbol, namespaces
                special[key] = special.get(key, 0) + 1
                break
    if process.wait() != 0 or symbols == 0:
        sys.exit(f"check_wide_registers: cannot disassemble {binary}")
    return special, symbols


def allowed(symbol, namespaces):
    match = NAMESPACE.search(symbol)
    return (match and match.group(1) in namespaces) or any(p.search(symbol) for p, _ in ALLOWED)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    special, symbols = special_functions(sys.argv[1])
    faults = {key: count for key, count in special.items() if not allowed(*key)}
    for (name, namespaces), count in sorted(faults.items()):
        print(f"check_wide_registers: {count} instructions of {namespaces[-1]} in {name}",
              file=sys.stderr)
    if not faults:
        functions = len({symbol for symbol, _ in special})
        print(f"check_wide_registers: ok, {functions} of {symbols} functions are for newer CPUs")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
