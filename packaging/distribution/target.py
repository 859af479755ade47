"""The targets of a release, and which one a program is for."""

import struct
import sys
from dataclasses import dataclass
from pathlib import Path

INTERPRETER = 3


@dataclass(frozen=True)
class Target:
    """One system. `machine` is the format of its programs and the number of its processor there."""

    name: str
    npm: str
    wheel: str
    machine: tuple[str, int]

    @property
    def program(self):
        return "rehearse.exe" if self.is_windows else "rehearse"

    @property
    def is_windows(self):
        return "windows" in self.name

    @property
    def is_linux(self):
        return "linux" in self.name


# A static program for Linux runs with glibc and with musl. Those for macOS run on the oldest version that Rust supports.
TARGETS = [
    Target("x86_64-unknown-linux-musl", "linux-x64", "manylinux2014_x86_64.musllinux_1_2_x86_64", ("ELF", 0x3E)),
    Target("aarch64-unknown-linux-musl", "linux-arm64", "manylinux2014_aarch64.musllinux_1_2_aarch64", ("ELF", 0xB7)),
    Target("x86_64-apple-darwin", "darwin-x64", "macosx_10_12_x86_64", ("Mach-O", 0x0100_0007)),
    Target("aarch64-apple-darwin", "darwin-arm64", "macosx_11_0_arm64", ("Mach-O", 0x0100_000C)),
    Target("x86_64-pc-windows-msvc", "win32-x64", "win_amd64", ("PE", 0x8664)),
]


def target_of(binary):
    """The target that the program is for, by its header."""
    try:
        machine = _machine(Path(binary).read_bytes())
    except OSError as error:
        sys.exit(f"error: {binary} cannot be read: {error.strerror}")
    found = [target for target in TARGETS if target.machine == machine]
    if not found:
        sys.exit(f"error: {binary} is no program for {', '.join(target.name for target in TARGETS)}")
    return found[0]


def _machine(program):
    if program[:6] == b"\x7fELF\x02\x01" and len(program) > 64:
        return "ELF", struct.unpack_from("<H", program, 18)[0]
    if program[:4] == b"\xcf\xfa\xed\xfe" and len(program) > 8:
        return "Mach-O", struct.unpack_from("<I", program, 4)[0]
    if program[:2] == b"MZ" and len(program) > 64:
        header = struct.unpack_from("<I", program, 0x3C)[0]
        if program[header : header + 4] == b"PE\0\0" and len(program) > header + 6:
            return "PE", struct.unpack_from("<H", program, header + 4)[0]
    return None


def has_interpreter(program):
    """Whether the kernel of Linux starts the program by a dynamic linker."""
    offset, size, number = *struct.unpack_from("<Q", program, 32), *struct.unpack_from("<HH", program, 54)
    return any(struct.unpack_from("<I", program, offset + size * it)[0] == INTERPRETER for it in range(number))
