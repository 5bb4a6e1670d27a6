#!/usr/bin/env python3
"""Runs a test program on an emulated CPU with AVX-512, for machines that have none.

  run_avx512_emulated.py PROGRAM [ARGUMENTS]

PROGRAM is linked with -static -no-pie. The CPU is Bochs's, from the Python package bochscpu-python;
no operating system boots: this script loads the program and answers the few system calls that a
test makes (memory, time, writing to the terminal). The exit status is the program's. Emulated code
runs some hundred times slower than native: give --gtest_filter.

The emulated CPU is a Skylake: it lacks VNNI. So the cpuid instructions and the vpdpbusd ones of the
program are replaced by traps, and this script answers the former with VNNI added and computes the
latter.
"""
import ctypes
import os
import re
import struct
import subprocess
import sys
import time

import bochscpu
import bochscpu.cpu
from bochscpu._bochscpu import memory

PAGE = 4096
TABLES = 0x1000          # page tables: two upper levels, then four directories from 0x3000 on
TRAP = 0x8000            # where the syscall instruction lands: a hlt
CPUID = 0x9000           # cpuid, hlt
MAPPINGS = 0x4000_0000   # anonymous memory, upwards
STACK_TOP = 0xF000_0000
ENOENT, ENOSYS, ENOTTY = -2, -38, -25


class Machine:
    """Memory up to 4 GiB, identity-mapped, filled with zero pages as it is touched."""

    def __init__(self):
        self.pages = {}  # where each page is in this process

    def touch(self, address):
        page = address & ~(PAGE - 1)
        if page not in self.pages:
            self.pages[page] = memory.allocate_host_page()
            memory.page_insert(page, self.pages[page])
        return self.pages[page] + address % PAGE

    def write(self, address, data):
        while data:
            room = PAGE - address % PAGE
            ctypes.memmove(self.touch(address), data[:room], len(data[:room]))
            address, data = address + room, data[room:]

    def read(self, address, size):
        result = b""
        while size > 0:
            room = min(size, PAGE - address % PAGE)
            result += ctypes.string_at(self.touch(address), room)
            address, size = address + room, size - room
        return result

    def build_page_tables(self):
        present = 0x7  # present, writable, user
        self.write(TABLES, struct.pack("<Q", (TABLES + 0x1000) | present))
        for gib in range(4):
            directory = TABLES + 0x2000 + gib * PAGE
            self.write(TABLES + 0x1000 + 8 * gib, struct.pack("<Q", directory | present))
            entries = [((gib << 30) + (i << 21)) | present | 0x80 for i in range(512)]
            self.write(directory, struct.pack("<512Q", *entries))
        self.write(TRAP, b"\xf4")
        self.write(CPUID, b"\x0f\xa2\xf4")


def load(machine, path):
    """(entry, end of the image, auxiliary vector) of a static ELF program."""
    image = open(path, "rb").read()
    if image[:5] != b"\x7fELF\x02" or struct.unpack_from("<H", image, 16)[0] != 2:
        sys.exit(f"{path}: not a static x86-64 program (link with -static -no-pie)")
    entry, headers = struct.unpack_from("<QQ", image, 24)
    size, count = struct.unpack_from("<HH", image, 54)
    end, header_address = 0, 0
    for i in range(count):
        kind, _, offset, address, _, filed, loaded, _ = struct.unpack_from(
            "<IIQQQQQQ", image, headers + i * size)
        if kind == 3:
            sys.exit(f"{path}: needs a dynamic linker (link with -static -no-pie)")
        if kind != 1:
            continue
        machine.write(address, image[offset:offset + filed])
        end = max(end, address + loaded)
        if offset <= headers < offset + filed:
            header_address = address + headers - offset
    auxiliary = {3: header_address, 4: size, 5: count, 6: PAGE, 9: entry, 11: 0, 12: 0, 13: 0,
                 14: 0, 23: 0}
    return entry, end, auxiliary


def set_traps(machine, path):
    """Replaces what the CPU lacks by hlt: {address: (address of the next instruction, text)}."""
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True,
                             capture_output=True, text=True).stdout
    traps, pending = {}, None
    for line in listing.splitlines():
        found = re.match(r"\s*([0-9a-f]+):\t(.*)", line)
        if not found:
            continue
        address = int(found[1], 16)
        if pending:
            traps[pending[0]] = (address, pending[1])
        pending = (address, found[2]) if re.match(r"cpuid|vpdpbusd\b", found[2]) else None
    for address in traps:
        machine.write(address, b"\xf4")
    return traps


def answer_cpuid(session, hook, state, after):
    leaf = state.rax & 0xFFFFFFFF
    state.rip = CPUID
    session.cpu.state = state
    session.run([hook])
    state = session.cpu.state
    if leaf == 7:
        state.rcx = state.rcx | 1 << 11  # VNNI
    state.rip = after
    session.cpu.state = state


def vector_bytes(value, size):
    return struct.pack("<8Q", *value.q)[:size]


def compute_vpdpbusd(machine, session, state, text, after):
    """dst[i] += sum over j < 4 of unsigned a[4i + j] * signed b[4i + j]; AT&T: b, a, dst."""
    operands = re.match(r"vpdpbusd\s+(.*),%([yz])mm(\d+),%[yz]mm(\d+)$", text.split("#")[0].strip())
    if not operands:
        sys.exit(f"cannot emulate: {text}")
    size = 64 if operands[2] == "z" else 32
    registers = state.zmm
    source = re.match(r"%[yz]mm(\d+)$", operands[1])
    if source:
        b = vector_bytes(registers[int(source[1])], size)
    else:
        form = re.match(r"(-?0x[0-9a-f]+)?\((%\w+)?(?:,(%\w+))?(?:,(\d))?\)({1to\d+})?$",
                        operands[1])
        if not form:
            sys.exit(f"cannot emulate: {text}")
        address = int(form[1] or "0", 16)
        if form[2]:
            address += after if form[2] == "%rip" else getattr(state, form[2][1:])
        if form[3]:
            address += getattr(state, form[3][1:]) * int(form[4] or 1)
        address &= 2**64 - 1
        b = machine.read(address, 4) * (size // 4) if form[5] else machine.read(address, size)
    a = vector_bytes(registers[int(operands[3])], size)
    target = int(operands[4])
    sums = list(struct.unpack(f"<{size // 4}i", vector_bytes(registers[target], size)))
    b = struct.unpack(f"<{size}b", b)
    for i in range(size // 4):
        total = sums[i] + sum(a[4 * i + j] * b[4 * i + j] for j in range(4))
        sums[i] = (total + 2**31) % 2**32 - 2**31
    value = bochscpu._bochscpu.Zmm()
    value.q = list(struct.unpack("<8Q", struct.pack(f"<{size // 4}i", *sums).ljust(64, b"\0")))
    registers[target] = value
    state.zmm = registers
    state.rip = after
    session.cpu.state = state


def build_stack(machine, arguments, auxiliary):
    top = STACK_TOP - 0x1000
    pointers = []
    for argument in arguments:
        data = argument.encode() + b"\0"
        top -= len(data)
        machine.write(top, data)
        pointers.append(top)
    top = (top - 16) & ~15
    machine.write(top, bytes(range(16)))
    auxiliary[25] = top  # AT_RANDOM: any bytes
    words = [len(arguments), *pointers, 0, 0]
    for key, value in auxiliary.items():
        words += [key, value]
    words += [0, 0]
    top = (top - 8 * len(words)) & ~15
    machine.write(top, struct.pack(f"<{len(words)}Q", *words))
    return top


class Kernel:
    """The system calls of a test program."""

    def __init__(self, machine, image_end):
        self.machine = machine
        self.break_at = (image_end + PAGE - 1) & ~(PAGE - 1)
        self.next_mapping = MAPPINGS
        self.status = None

    def call(self, state):
        """The result, or None when the program has ended."""
        number = state.rax
        a, b, c = state.rdi, state.rsi, state.rdx
        if number in (60, 231):  # exit, exit_group
            self.status = a & 0xFF
            return None
        if number == 1:  # write
            os.write(2 if a == 2 else 1, self.machine.read(b, c))
            return c
        if number == 20:  # writev
            total = 0
            for i in range(c):
                address, size = struct.unpack("<QQ", self.machine.read(b + 16 * i, 16))
                os.write(2 if a == 2 else 1, self.machine.read(address, size))
                total += size
            return total
        if number == 9:  # mmap, anonymous
            size = (b + PAGE - 1) & ~(PAGE - 1)
            address = self.next_mapping
            self.next_mapping += size + PAGE
            return address
        if number == 12:  # brk
            if a >= self.break_at:
                self.break_at = a
            return self.break_at
        if number == 158:  # arch_prctl
            if a != 0x1002:
                return -22
            fs = state.fs
            fs.base = b
            state.fs = fs
            return 0
        if number in (228, 96):  # clock_gettime, gettimeofday
            now = time.time_ns()
            self.machine.write(b if number == 228 else a, struct.pack(
                "<QQ", now // 10**9, now % 10**9 if number == 228 else now % 10**9 // 1000))
            return 0
        if number in (5, 262):  # fstat, newfstatat: a terminal for open files
            if number == 262 and self.machine.read(b, 1) != b"\0":
                return ENOENT
            stat = bytearray(144)
            struct.pack_into("<I", stat, 24, 0o20620)
            struct.pack_into("<Q", stat, 56, 1024)
            self.machine.write(b if number == 5 else c, bytes(stat))
            return 0
        if number == 318:  # getrandom: anything
            self.machine.write(a, bytes(b))
            return b
        if number == 79:  # getcwd
            self.machine.write(a, b"/\0")
            return 2
        if number in (39, 186):  # getpid, gettid
            return 1
        if number in (10, 11, 13, 14, 28, 202, 218, 273):  # memory protection, signals, futex: done
            return 0
        if number in (4, 21, 89, 257):  # stat, access, readlink, openat: no files
            return ENOENT
        if number == 16:
            return ENOTTY
        if number in (200, 234):  # tkill, tgkill: abort()
            self.status = 134
            return None
        return ENOSYS


def flat_segment(code):
    segment = bochscpu.Segment()
    segment.present = True
    segment.selector = 0x10 if code else 0x18
    segment.base = 0
    segment.limit = 0xFFFFFFFF
    segment.attr = 0xA09B if code else 0xC093
    return segment


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    machine = Machine()
    machine.build_page_tables()
    entry, end, auxiliary = load(machine, sys.argv[1])
    kernel = Kernel(machine, end)
    traps = set_traps(machine, sys.argv[1])

    session = bochscpu.Session()
    session.missing_page_handler = lambda address, *_: machine.touch(address)
    state = bochscpu.State()
    bochscpu.cpu.set_long_mode(state)
    state.cr0 = state.cr0 & ~0x4 | 0x2  # floating point is there: no EM, MP
    state.cr4 = state.cr4 | 0x40600     # OSFXSR, OSXMMEXCPT, OSXSAVE
    state.xcr0 = 0xE7                   # x87, SSE, AVX, AVX-512
    state.mxcsr = 0x1F80
    state.mxcsr_mask = 0xFFFF
    state.fpcw = 0x37F
    state.cr3 = TABLES
    state.cs = flat_segment(True)
    for name in ("ss", "ds", "es", "fs", "gs"):
        setattr(state, name, flat_segment(False))
    state.lstar = TRAP
    state.star = 0x10 << 32
    state.sfmask = 0
    state.rflags = 0x2
    state.rip = entry
    state.rsp = build_stack(machine, sys.argv[1:], auxiliary)
    session.cpu.state = state

    exceptions = []

    def on_exception(s, cpu, vector, code):
        # A page fault would be a missing page of ours; anything else is the program's.
        exceptions.append((vector, code))
        s.stop()

    hook = bochscpu.Hook()
    hook.hlt = lambda s, cpu: s.stop()
    hook.exception = on_exception
    while True:
        session.run([hook])
        state = session.cpu.state
        if exceptions:
            sys.exit(f"exception {exceptions[0]} at {state.rip:#x}")
        if state.rip - 1 in traps:
            after, text = traps[state.rip - 1]
            if text.startswith("cpuid"):
                answer_cpuid(session, hook, state, after)
            else:
                compute_vpdpbusd(machine, session, state, text, after)
            continue
        result = kernel.call(state)
        if result is None:
            return kernel.status
        state.rax = result & (2**64 - 1)
        state.rip = state.rcx
        state.rflags = state.r11 | 0x2
        session.cpu.state = state


if __name__ == "__main__":
    sys.exit(main())
