# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Settings of the role preflight from its variables."""
from __future__ import annotations

import typing as t

from .check import Settings

_GIB = 1 << 30


class SettingsError(Exception):
    """A variable of the role has the wrong shape; the message starts with its name."""


def _entries(name: str, value: t.Any, *keys: str) -> list[dict[str, t.Any]]:
    good = isinstance(value, (list, tuple)) and all(
        isinstance(item, t.Mapping) and set(item) == set(keys) for item in value)
    if not good:
        raise SettingsError(f"preflight_{name}: got {value!r}, wanted a list of mappings with {' and '.join(keys)}")
    return [dict(item) for item in value]


def _number(name: str, value: t.Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise SettingsError(f"preflight_{name}: got {value!r}, wanted a number that is not negative")
    return float(value)


def _version(name: str, value: t.Any) -> tuple[int, ...]:
    parts = str(value).split(".")
    if isinstance(value, float) or not all(part.isdigit() for part in parts):
        raise SettingsError(f'preflight_{name}: got {value!r}, wanted a version in quotes such as "3.9"')
    return tuple(map(int, parts))


def settings(values: t.Any) -> Settings:
    """``values`` has the role's variables without their prefix."""
    if not isinstance(values, t.Mapping):
        raise SettingsError(f"settings: got {type(values).__name__}, wanted the variables of the role preflight")
    systems = values.get("supported_os")
    if not isinstance(systems, (list, tuple)) or not all(len(str(one).split()) == 2 for one in systems):
        raise SettingsError(f"preflight_supported_os: got {systems!r}, wanted a list of texts such as debian 13")
    disks = _entries("disks", values.get("disks"), "path", "free_gib")
    return Settings(
        tuple(" ".join(str(one).split()) for one in systems),
        {str(one["path"]): _number("disks", one["free_gib"]) * _GIB for one in disks},
        _number("free_inodes_percent", values.get("free_inodes_percent")),
        _version("python_min", values.get("python_min")), bool(values.get("require_time_sync")),
        _number("max_offset_seconds", values.get("max_offset_seconds")),
        _number("warn_offset_seconds", values.get("warn_offset_seconds")), bool(values.get("require_names")))
