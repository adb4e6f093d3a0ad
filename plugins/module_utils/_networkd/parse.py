# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Parse networkctl and .network files by systemd's own rules."""
from __future__ import annotations

import json
import re
import typing as t

from .model import Link

# systemd parse_mtu: a size to base 1024, from 68 (IPv4's least) to what 32 bits hold.
_SIZE = re.compile(r"(\d+)\s*([BKMG]?)")
_FACTOR = {"": 1, "B": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
_LEAST, _MOST = 68, 2**32 - 1


def links(text: str) -> dict[str, Link]:
    """Links of ``networkctl --json=short list``; ValueError for anything else."""
    data = json.loads(text)
    if not isinstance(data, dict) or not isinstance(data.get("Interfaces"), list):
        raise ValueError('no list "Interfaces"')
    found: dict[str, Link] = {}
    for item in data["Interfaces"]:
        if not isinstance(item, dict) or not isinstance(item.get("Name"), str):
            raise ValueError("an interface without a name")
        found[item["Name"]] = _link(item)
    return found


def _link(item: dict[str, t.Any]) -> Link:
    return Link(
        name=item["Name"],
        admin_state=str(item.get("AdministrativeState", "")),
        operational_state=str(item.get("OperationalState", "")),
        network_file=item.get("NetworkFile") or None,
    )


def assignments(text: str) -> t.Iterator[tuple[str, str, str]]:
    """(section, key, value) of each assignment; key and value are empty where a section begins.

    A comment is a whole line, even between a line and its continuation; a line that ends in a backslash
    goes on in the next, joined by a blank [systemd.syntax(7)].
    """
    section, pending = "", ""
    for raw in text.splitlines():
        line = raw.strip()
        if line[:1] in ("#", ";"):
            continue
        if raw.endswith("\\"):
            pending += f"{raw[:-1]} "
            continue
        line, pending = f"{pending}{raw}".strip(), ""
        if line.startswith("["):
            section = line[1:-1] if line.endswith("]") else ""
            yield section, "", ""
        elif "=" in line:
            key, _equals, value = line.partition("=")
            yield section, key.strip(), value.strip()


def _mtu(value: str) -> int | None:
    """Bytes, 0 for an empty value (which resets), None for one that networkd ignores with a warning."""
    if not value:
        return 0
    match = _SIZE.fullmatch(value)
    if match is None:
        return None
    size = int(match.group(1)) * _FACTOR[match.group(2)]
    return size if _LEAST <= size <= _MOST else None


def link_mtu(text: str) -> int | None:
    """MTUBytes= of [Link] that this file leaves behind: bytes, 0 if it resets the value, None if it says nothing."""
    found = None
    for section, key, value in assignments(text):
        if section == "Link" and key == "MTUBytes":
            size = _mtu(value)
            found = found if size is None else size
    return found
