#!/usr/bin/python3
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a file that modinfo and depmod take for a kernel module: python3 ko.py FILE KEY=VALUE ...

The lab's stand-in for a compiler: an ELF object with a .modinfo section and nothing to run. Standard library, Python
3.9 or later.
"""
from __future__ import annotations

import os
import platform
import struct
import sys

MACHINES = {"x86_64": 62, "aarch64": 183}
# Name, type, entry size [elf(5)]: the first section of each file is the empty one.
SECTIONS = ((".modinfo", 1, 0), (".symtab", 2, 24), (".strtab", 3, 0), (".shstrtab", 3, 0))


def module(fields: list[str]) -> bytes:
    names = b"\0" + b"".join(name.encode() + b"\0" for name, _type, _size in SECTIONS)
    # A NUL before the first text as well, so that every text has one on both sides.
    contents = [b"\0" + b"".join(field.encode() + b"\0" for field in fields), bytes(24), b"\0", names]
    body, headers = b"", bytes(64)
    for (name, kind, size), content in zip(SECTIONS, contents):
        body += bytes(-len(body) % 8)
        link = 3 if kind == 2 else 0
        place = names.index(b"\0" + name.encode() + b"\0") + 1
        # sh_name, type, flags, addr, offset, size, link, info, addralign, entsize
        headers += struct.pack("<IIQQQQIIQQ", place, kind, 0, 0, 64 + len(body), len(content), link, int(kind == 2), 8,
                               size)
        body += content
    body += bytes(-len(body) % 8)
    start = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 1, MACHINES.get(platform.machine(), 62), 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64,
        len(SECTIONS) + 1, len(SECTIONS))
    return start + body + headers


def main() -> None:
    path, *fields = sys.argv[1:]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(module(fields))


if __name__ == "__main__":
    main()
