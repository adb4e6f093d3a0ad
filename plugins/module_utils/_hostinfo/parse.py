# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Parse what a host's files and tools say of it. Raises ValueError for text that is not theirs."""
from __future__ import annotations

import ipaddress
import json
import re
import shlex
import typing as t

from .model import Fabric, Neighbour, Route, TimeState

_VERSION = re.compile(r"\b(\d{3,}(?:\.\d+)+)\b")
_CHRONY_FIELDS = 14
# ARM leaves a part number in /proc/cpuinfo and no name [Linux arch/arm64/include/asm/cputype.h].
_ARM_PARTS = {("0x41", "0xd4f"): "Neoverse-V2", ("0x41", "0xd40"): "Neoverse-V1", ("0x41", "0xd0c"): "Neoverse-N1"}
_FAMILIES = (("debian", "debian"), ("ubuntu", "debian"), ("rhel", "redhat"), ("fedora", "redhat"), ("suse", "suse"))


def shell_like(text: str) -> dict[str, str]:
    """``KEY="value"`` lines, as in os-release and dgx-release; of a key that repeats the last one wins."""
    found = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if not equals or key.startswith("#"):
            continue
        try:
            found[key] = " ".join(shlex.split(value))
        except ValueError:
            found[key] = value.strip()
    return found


def os_release(text: str) -> dict[str, t.Any]:
    """Version "9.4" of RHEL and "24.04" of Ubuntu stay as they are."""
    values = shell_like(text)
    if "ID" not in values:
        raise ValueError("no ID in it")
    words = [values["ID"], *values.get("ID_LIKE", "").split()]
    family = next((family for word in words for name, family in _FAMILIES if word == name), None)
    return {"id": values["ID"], "version": values.get("VERSION_ID"), "codename": values.get("VERSION_CODENAME"),
            "family": family, "name": values.get("PRETTY_NAME")}


def base_os(text: str) -> dict[str, t.Any] | None:
    """/etc/dgx-release: the last over-the-air version, else the one that it was built with."""
    values = shell_like(text)
    build = values.get("DGX_SWBUILD_VERSION")
    version = values.get("DGX_OTA_VERSION") or build
    if version is None:
        return None
    return {"version": version, "build": build, "name": values.get("DGX_PRETTY_NAME"),
            "platform": values.get("DGX_PLATFORM")}


def nvidia_version(text: str) -> dict[str, t.Any]:
    """First line of /proc/driver/nvidia/version."""
    first = text.strip().splitlines()[0] if text.strip() else ""
    match = _VERSION.search(first)
    if not first.startswith("NVRM version:") or match is None:
        raise ValueError("no line with NVRM version")
    return {"version": match.group(1), "flavour": "open" if "Open Kernel Module" in first else "proprietary"}


def memory_mib(text: str) -> int | None:
    """MemTotal of /proc/meminfo."""
    found = re.search(r"^MemTotal:\s+([0-9]+) kB$", text, re.MULTILINE)
    return int(found[1]) // 1024 if found else None


def cpu_model(text: str) -> str | None:
    """Name of the first processor in /proc/cpuinfo."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            values.setdefault(key.strip(), value.strip())
    if "model name" in values:
        return values["model name"]
    part = (values.get("CPU implementer", ""), values.get("CPU part", ""))
    return _ARM_PARTS.get(part) or (f"implementer {part[0]} part {part[1]}" if all(part) else None)


def fabrics(text: str) -> list[Fabric]:
    """The part "Fabric" of each GPU in ``nvidia-smi -q``. A GPU without one (old drivers) is left out."""
    if "NVSMI LOG" not in text:
        raise ValueError("no heading NVSMI LOG")
    found: list[Fabric] = []
    values: dict[str, str] = {}
    depth = -1
    for line in [*text.splitlines(), "end"]:
        indent = len(line) - len(line.lstrip())
        if depth >= 0 and line.strip() and indent <= depth:
            found.append(_fabric(values))
            depth = -1
        if line.strip() == "Fabric":
            values, depth = {}, indent
        elif depth >= 0 and ":" in line:
            key, _colon, value = line.partition(":")
            values.setdefault(key.strip(), value.strip())
    return found


def _fabric(values: t.Mapping[str, str]) -> Fabric:
    clique = values.get("CliqueId", "")
    return Fabric(values.get("State"), values.get("Status"), int(clique) if clique.isdigit() else None,
                  values.get("ClusterUUID"))


def _first(item: t.Any, key: str) -> dict[str, t.Any]:
    """First object of a list that json0 makes of everything; an empty one where there is none."""
    value = item.get(key) if isinstance(item, dict) else None
    return value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else {}


def neighbours(text: str) -> list[Neighbour]:
    """``lldpcli -f json0 show neighbors``, where every value is a list; without a neighbour there is no interface."""
    data = json.loads(text)
    top = data.get("lldp") if isinstance(data, dict) else None
    if not isinstance(top, list):
        raise ValueError("no list lldp in it; lldpd without json0?")
    found = []
    for entry in (one for item in top if isinstance(item, dict) for one in item.get("interface", [])):
        chassis, port = _first(entry, "chassis"), _first(entry, "port")
        found.append(Neighbour(str(entry.get("name")), _first(chassis, "name").get("value"),
                               _first(chassis, "id").get("value"), _first(port, "id").get("value")))
    return found


def chrony(text: str) -> TimeState:
    """``chronyc -c tracking``. An unsynchronised clock has offset 0 and exit status 0, so stratum and id decide."""
    fields = text.strip().split(",")
    if len(fields) != _CHRONY_FIELDS:
        raise ValueError(f"{len(fields)} fields, not {_CHRONY_FIELDS}")
    stratum = int(fields[2])
    synchronised = stratum > 0 and fields[0] != "00000000" and fields[13] != "Not synchronised"
    return TimeState("chrony", synchronised, float(fields[4]) if synchronised else None, stratum)


def timedatectl(text: str) -> TimeState:
    """``timedatectl show -p NTPSynchronized``: the kernel's word, without an offset."""
    value = shell_like(text).get("NTPSynchronized")
    if value not in ("yes", "no"):
        raise ValueError("no NTPSynchronized in it")
    return TimeState("timedatectl", value == "yes")


def default_routes(text: str, family: int) -> list[Route]:
    """``ip -j -4 route show default``."""
    # `ip -j` prints nothing at all, not [], for some empty answers.
    data = json.loads(text.strip() or "[]")
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise ValueError("not a JSON list of objects")
    found = []
    for number, item in enumerate(entry for entry in data if entry):
        for hop in item.get("nexthops") or [item]:
            if "dev" in hop:
                gateway = hop.get("gateway") or (hop.get("via") or {}).get("host")
                found.append(Route(family, number, str(hop["dev"]), gateway, int(item.get("metric", 0))))
    return found


def ahosts(text: str) -> tuple[list[str], str | None]:
    """Addresses and canonical name of ``getent ahosts NAME``: the name stands on the first line only."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if not lines or any(len(fields) < 2 for fields in lines):
        raise ValueError("no addresses in it")
    for fields in lines:
        # A link-local address names its port behind a %.
        ipaddress.ip_address(fields[0].partition("%")[0])
    return list(dict.fromkeys(fields[0] for fields in lines)), lines[0][2] if len(lines[0]) > 2 else None


def hosts(text: str) -> dict[str, list[str]]:
    """Names by address of ``getent hosts ADDRESS ...``."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) > 1:
            found.setdefault(fields[0], []).extend(fields[1:])
    return found
