# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""PCI Express registers in a function's configuration space. Never touches the machine.

Offsets and fields: PCI Express Base Specification 7.5.3; in Linux include/uapi/linux/pci_regs.h, PCI_EXP_DEVCTL.
"""
from __future__ import annotations

_STATUS, _HAS_CAPABILITIES = 0x06, 0x10
_FIRST_POINTER = 0x34
_EXPRESS = 0x10
_DEVICE_CONTROL = 8
_READ_REQUEST_SHIFT, _READ_REQUEST_MASK = 12, 0x7
# What others than root may read; capabilities lie behind it.
UNPRIVILEGED_BYTES = 64
READ_REQUEST_BYTES = (128, 256, 512, 1024, 2048, 4096)


def express_offset(config: bytes) -> int:
    """Where the PCI Express capability is: the list is followed, as the place differs between devices."""
    if len(config) <= UNPRIVILEGED_BYTES:
        raise ValueError(f"only {len(config)} bytes of configuration space; root sees all")
    if not config[_STATUS] & _HAS_CAPABILITIES:
        raise ValueError("no capability list")
    pointer, seen = config[_FIRST_POINTER] & ~3, set()
    while pointer and pointer not in seen and pointer + _DEVICE_CONTROL + 2 <= len(config):
        if config[pointer] == _EXPRESS:
            return pointer
        seen.add(pointer)
        pointer = config[pointer + 1] & ~3
    raise ValueError("no PCI Express capability")


def max_read_request_bytes(config: bytes) -> int:
    """MaxReadReq, as in lspci's DevCtl line."""
    at = express_offset(config) + _DEVICE_CONTROL
    code = int.from_bytes(config[at:at + 2], "little") >> _READ_REQUEST_SHIFT & _READ_REQUEST_MASK
    if code >= len(READ_REQUEST_BYTES):
        raise ValueError(f"MaxReadReq has the reserved code {code}")
    return READ_REQUEST_BYTES[code]


def set_read_request(pci: str, size_bytes: int) -> tuple[str, ...]:
    """setpci finds the capability by itself and writes only the masked bits."""
    code = READ_REQUEST_BYTES.index(size_bytes)
    return ("setpci", "-s", pci, f"CAP_EXP+{_DEVICE_CONTROL:02x}.w={code << _READ_REQUEST_SHIFT:04x}:f000")
