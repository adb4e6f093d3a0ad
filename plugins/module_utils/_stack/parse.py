# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Parse what tells about packages, kernels and drivers. Raises ValueError for text that is not theirs."""
from __future__ import annotations

import re
import shlex
import typing as t

from .._mlx5 import stack
from .model import Build, Module, Os

_FAMILIES = {"Debian": {"debian", "ubuntu"}, "RedHat": {"rhel", "fedora", "centos", "rocky", "almalinux"}}
# New: name/version, kernel, arch: state. Old: name, version, kernel, arch: state. Without a kernel: only registered.
_BUILD = re.compile(r"(?P<name>[^,/\s]+)(?:/|, )(?P<version>[^,:\s]+)(?:, (?P<kernel>[^,\s]+), (?P<arch>[^,:\s]+))?: "
                    r"(?P<state>[a-z]+)\s*(?:\((?P<note>.*)\))?\s*")
_DKMS_ASIDE = re.compile(r"(?i)(warning|deprecated)\b")


def os_release(text: str) -> Os:
    """Of /etc/os-release [os-release(5)]."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and not key.startswith("#"):
            words = shlex.split(value)
            values[key] = words[0] if words else ""
    if "ID" not in values:
        raise ValueError("no ID")
    ids = [values["ID"], *values.get("ID_LIKE", "").split()]
    family = next((name for one in ids for name, known in _FAMILIES.items() if one in known), values["ID"])
    return Os(values["ID"], values.get("VERSION_ID", ""), values.get("VERSION_CODENAME", ""), family)


def _rows(text: str, fields: int) -> t.Iterator[list[str]]:
    for line in text.splitlines():
        parts = line.split("\t")
        if len(parts) != fields:
            raise ValueError(f"a line without {fields} fields")
        yield parts


def dpkg(text: str) -> dict[str, str]:
    """Installed version by name, of ``dpkg-query -W -f '${Package}\\t${db:Status-Status}\\t${Version}\\n'``."""
    return {name: version for name, status, version in _rows(text, 3) if status == "installed"}


def rpm(text: str) -> dict[str, str]:
    """Installed version by name, of ``rpm -q --qf '%{NAME}\\t%{VERSION}-%{RELEASE}\\n'``."""
    rows = [line for line in text.splitlines() if not re.fullmatch(r"package \S+ is not installed", line)]
    return {row[0]: row[1] for row in _rows("\n".join(rows), 2)}


def modinfo(text: str) -> Module:
    info = stack.modinfo(text)
    if not info.get("filename"):
        raise ValueError("no filename")
    return Module(stack.installed(info), info.get("version"), info.get("srcversion"), info["filename"])


def dkms(text: str) -> tuple[Build, ...]:
    found = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        match = _BUILD.fullmatch(line)
        if match:
            found.append(Build(match["name"], match["version"], match["kernel"], match["state"], match["note"] or ""))
        elif not _DKMS_ASIDE.match(line):
            raise ValueError(f"not a line of dkms status: {line[:60]}")
    return tuple(found)


def secure_boot(text: str) -> bool | None:
    """Of ``mokutil --sb-state``; None where the machine has no such thing."""
    words = text.split()
    return words[1] == "enabled" if words[:1] == ["SecureBoot"] and words[1:2] in (["enabled"], ["disabled"]) else None
