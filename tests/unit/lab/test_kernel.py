# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

from lab import kernel


def test_the_body_writes_every_module_and_indexes_them() -> None:
    body = kernel.body()
    assert len(re.findall(r"^inside python3 .*\.ko ", body, re.MULTILINE)) == len(kernel.MODULES)
    assert f"\ninside depmod {os.uname().release}\n" in body
    # The file that makes modules is in the here-document and ends before its mark.
    text = kernel.KO.read_text(encoding="utf-8")
    assert text in body and "END_OF_KO" not in text
    subprocess.run(["sh", "-n"], input=body, text=True, check=True)


def test_fields_are_those_of_the_kernel_s_own_driver() -> None:
    found = kernel.fields("mlx5_core", "6.1.0")
    assert "intree=Y" in found and not [field for field in found if field.startswith("version=")]
    assert re.fullmatch(r"[0-9A-F]{23}", kernel.srcversion("a")) and kernel.srcversion("a") != kernel.srcversion("b")


def test_a_file_is_an_elf_object_with_its_section(tmp_path: Path) -> None:
    path = tmp_path / "a/b/x.ko"
    subprocess.run([sys.executable, str(kernel.KO), str(path), "version=1", "license=GPL"], check=True)
    data = path.read_bytes()
    assert data[:7] == b"\x7fELF\x02\x01\x01"
    offset, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    assert (size, count, names, len(data)) == (64, 5, 4, offset + 64 * 5)
    place, length = struct.unpack_from("<QQ", data, offset + 64 + 24)
    assert data[place:place + length] == b"\0version=1\0license=GPL\0"
