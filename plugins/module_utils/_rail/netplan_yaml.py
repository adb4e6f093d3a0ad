# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read the YAML that ``netplan get`` prints: block style, one key or item a line, strings in double quotes.

Managed nodes have no YAML library that we may count on, and this is no reader for YAML in general.
"""
from __future__ import annotations

import json
import typing as t


def _scalar(text: str) -> t.Any:
    if text[:1] in ('"', "[", "{"):
        return json.loads(text)
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.lstrip("-").isdigit() else text


def _lines(text: str) -> list[tuple[int, str]]:
    found = []
    for raw in text.splitlines():
        stripped = raw.strip()
        if stripped and not stripped.startswith("#"):
            found.append((len(raw) - len(raw.lstrip(" ")), stripped))
    return found


class _Reader:
    def __init__(self, lines: list[tuple[int, str]]) -> None:
        self.lines, self.at = lines, 0

    def indent(self) -> int:
        return self.lines[self.at][0] if self.at < len(self.lines) else -1

    def value(self, rest: str, parent: int) -> t.Any:
        """What follows ``key:``: a scalar on the line, or a block below it. A list may stand at the key's indent."""
        if rest:
            return _scalar(rest)
        below = self.indent()
        if below > parent or (below == parent and self.lines[self.at][1].startswith("- ")):
            return self.block(below)
        return None

    def block(self, indent: int) -> t.Any:
        return self.items(indent) if self.lines[self.at][1].startswith("- ") else self.mapping(indent)

    def items(self, indent: int) -> list[t.Any]:
        found = []
        while self.indent() == indent and self.lines[self.at][1].startswith("- "):
            text = self.lines[self.at][1][2:].strip()
            if text[:1] not in ('"', "[", "{") and (": " in text or text.endswith(":")):
                # A mapping that begins on the item's own line.
                self.lines[self.at] = (indent + 2, text)
                found.append(self.mapping(indent + 2))
            else:
                self.at += 1
                found.append(_scalar(text))
        return found

    def mapping(self, indent: int) -> dict[str, t.Any]:
        found: dict[str, t.Any] = {}
        while self.indent() == indent and not self.lines[self.at][1].startswith("- "):
            key, colon, rest = self.lines[self.at][1].partition(":")
            if not colon:
                raise ValueError(f"no key in the line {self.lines[self.at][1]!r}")
            self.at += 1
            found[str(_scalar(key))] = self.value(rest.strip(), indent)
        return found


def read(text: str) -> dict[str, t.Any]:
    """The document; ValueError for anything else than a mapping in netplan's own style."""
    reader = _Reader(_lines(text))
    if not reader.lines:
        return {}
    found = reader.block(0) if reader.indent() == 0 else None
    if not isinstance(found, dict) or reader.at != len(reader.lines):
        raise ValueError("not the YAML of netplan get")
    return found


def ethernets(text: str) -> dict[str, dict[str, t.Any]]:
    network = read(text).get("network")
    if not isinstance(network, dict):
        raise ValueError("no key network")
    found = network.get("ethernets") or {}
    if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
        raise ValueError("ethernets is no mapping of definitions")
    return found
