# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import pcie

from tests.unit.plugins.fake_tuning import config


@pytest.mark.parametrize("at", [0x48, 0x60, 0xC0])
@pytest.mark.parametrize(("code", "size"), [(0, 128), (2, 512), (5, 4096)])
def test_the_capability_is_found_wherever_it_is(at: int, code: int, size: int) -> None:
    assert pcie.express_offset(config(code, at)) == at
    assert pcie.max_read_request_bytes(config(code, at)) == size


def test_command() -> None:
    assert pcie.set_read_request("0000:03:00.0", 4096) == ("setpci", "-s", "0000:03:00.0", "CAP_EXP+08.w=5000:f000")
    assert pcie.set_read_request("0000:03:00.0", 128)[3] == "CAP_EXP+08.w=0000:f000"


def changed(at: int, value: int) -> bytes:
    data = bytearray(config(2))
    data[at] = value
    return bytes(data)


@pytest.mark.parametrize(("data", "why"), [
    (config(2)[:64], "only 64 bytes of configuration space; root sees all"),
    (b"", "only 0 bytes"), (changed(0x06, 0), "no capability list"), (changed(0x48, 0x11), "no PCI Express capability"),
    (changed(0x41, 0x40), "no PCI Express capability"), (config(7), "reserved code 7"),
])
def test_what_cannot_be_read(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        pcie.max_read_request_bytes(data)
