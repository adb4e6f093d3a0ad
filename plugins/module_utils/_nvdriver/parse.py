# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Parse what package managers say of names, versions and locks. Raises ValueError for text that is not theirs."""
from __future__ import annotations

import json
import re

from .._gpu import parse_driver
from .._gpu.model import Package
from .._mlx5 import stack
from .model import KernelModule

# "package X is not installed" has no tab; the second field is how kernel-devel is asked for, by release.
RPM_FORMAT = "%{NAME}\\t%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}\\t%{VERSION}\\n"
REPOQUERY_FORMAT = "%{name}\\t%{evr}\\n"
_NOT_INSTALLED = re.compile(r"package \S+ is not installed$")
_LOCK = re.compile(r"(?P<name>\S+?)-(?:\d+:)[^-\s]+-[^-\s]+$")
_STREAM = re.compile(r"^stream\s*=\s*(\S+)\s*$", re.MULTILINE)


def madison(text: str) -> dict[str, tuple[str, ...]]:
    """``apt-cache madison NAMES``: `` NAME | VERSION | REPOSITORY``, the newest first; unknown names have no line."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) < 3:
            raise ValueError(f"no three fields: {line[:60]!r}")
        if not fields[2].endswith(" Sources"):
            found.setdefault(fields[0], []).append(fields[1])
    return {name: tuple(dict.fromkeys(versions)) for name, versions in found.items()}


def repoquery(text: str) -> dict[str, tuple[str, ...]]:
    """``dnf repoquery`` in REPOQUERY_FORMAT, which sorts the oldest first."""
    found: dict[str, list[str]] = {}
    for line in filter(None, text.splitlines()):
        name, tab, version = line.partition("\t")
        if not tab:
            raise ValueError(f"no tab: {line[:60]!r}")
        found.setdefault(name, []).append(version)
    return {name: tuple(dict.fromkeys(reversed(versions))) for name, versions in found.items()}


def rpm(text: str) -> tuple[Package, ...]:
    """``rpm -q NAMES`` in RPM_FORMAT; each by both of its names."""
    found = []
    for line in text.splitlines():
        if _NOT_INSTALLED.match(line):
            continue
        fields = line.split("\t")
        if len(fields) != 3:
            raise ValueError(f"{len(fields)} fields, not 3: {line[:60]!r}")
        found += [Package(name, parse_driver.package_version(fields[2])) for name in fields[:2]]
    return tuple(found)


def locks(text: str) -> frozenset[str]:
    """Names in versionlock.list of dnf: ``NAME-EPOCH:VERSION-RELEASE.*``; a ``!`` excludes and is no lock."""
    lines = (line.strip() for line in text.splitlines())
    return frozenset(match["name"] for line in lines if not line.startswith(("#", "!"))
                     if (match := _LOCK.match(line)))


def module_stream(text: str) -> str | None:
    """The enabled stream in /etc/dnf/modules.d/NAME.module."""
    match = _STREAM.search(text) if re.search(r"^state\s*=\s*enabled\s*$", text, re.MULTILINE) else None
    return match.group(1) if match else None


def our_holds(text: str) -> frozenset[str]:
    """The names in our own file; what is not ours holds nothing."""
    try:
        data = json.loads(text)
    except ValueError:
        return frozenset()
    names = data.get("held") if isinstance(data, dict) else None
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def kernel_module(text: str) -> KernelModule:
    info = stack.modinfo(text)
    if "filename" not in info:
        raise ValueError("no filename")
    return KernelModule(info.get("version"), parse_driver.flavour_of_licence(info.get("license", "")))


def page_size(text: str) -> int:
    return int(text.strip())
