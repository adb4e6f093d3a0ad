# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Parse ``nvidia-smi -q`` and ``nvidia-smi nvlink -s``. Raises ValueError for text that is not theirs.

The text of ``-q`` and not XML or csv: it has every section in one call, its layout is known from real boards of three
branches, and a csv query fails as a whole where an older driver does not know one field of it.
"""
from __future__ import annotations

import re
import typing as t

from .model import Fabric, Mode, Remap, Smi, Temperature, pci_address
from .tables import ERROR_TEXTS, EVENTS, EXIT_STATES

Tree = dict[str, t.Any]

_HEADING = "NVSMI LOG"
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_NUMBER = re.compile(r"(-?\d+)\b")
# Missing values [driver-slurm-k8s.md 1.4].
_MISSING = ("", "N/A", "[N/A]", "Not Supported", "[Not Supported]", "Unknown Error", "[Unknown Error]")
_LOST = "GPU is lost"
_CLOCKS = ("SM", "Memory", "Graphics", "Video")
_LINK = re.compile(r"\s*Link (\d+): (.*)")
_LINK_GPU = re.compile(r"GPU (\d+):.*\(UUID: (\S+)\)")
_LIBRARY = re.compile(r"NVML library version: (\d+(?:\.\d+)+)")


def error_state(rc: int | None, text: str) -> int | None:
    """One of EXIT_STATES: by the exit status, then by text, as some print an error and exit 0; None: no such error."""
    if rc in EXIT_STATES:
        return rc
    if _HEADING in text:
        return None
    return next((state for words, state in ERROR_TEXTS if words in text), None)


def library_version(text: str) -> str | None:
    """NVML's own version, which it prints beside a mismatch."""
    match = _LIBRARY.search(text)
    return match.group(1) if match else None


def tree(text: str) -> Tree:
    """Sections by indentation. A key ends at the first " : ", whose column differs between branches."""
    root: Tree = {}
    stack: list[tuple[int, Tree]] = [(-1, root)]
    for line in text.splitlines():
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        while indent <= stack[-1][0]:
            stack.pop()
        here = stack[-1][1]
        # A key without a value ends with the colon.
        key, colon, value = f"{line.rstrip()} ".partition(" : ")
        if colon:
            here.setdefault(key.strip(), value.strip())
        else:
            section: Tree = {}
            here.setdefault(line.strip(), section)
            stack.append((indent, section))
    return root


def _section(data: Tree, *names: str) -> Tree:
    """The first of them that is there; a section that a board has not may be a plain N/A."""
    for name in names:
        found = data.get(name)
        if isinstance(found, dict):
            return found
    return {}


def _text(data: Tree, name: str) -> str | None:
    value = data.get(name)
    return value if isinstance(value, str) and value not in _MISSING else None


def _number(data: Tree, *names: str) -> int | None:
    for name in names:
        match = _NUMBER.match(_text(data, name) or "")
        if match:
            return int(match.group(1))
    return None


def _yes(data: Tree, name: str) -> bool | None:
    return {"Yes": True, "No": False}.get(_text(data, name) or "")


def _mode(data: Tree, name: str) -> Mode:
    part = _section(data, name)
    return Mode(_text(part, "Current"), _text(part, "Pending"))


def _fabric(data: Tree) -> Fabric | None:
    part = _section(data, "Fabric")
    if not part:
        return None
    health = {key: value for key, value in _section(part, "Health").items() if isinstance(value, str)}
    return Fabric(_text(part, "State"), _text(part, "Status"), _number(part, "CliqueId"), _text(part, "ClusterUUID"),
                  health)


def _temperature(data: Tree) -> Temperature:
    """Two families of labels: margins (degrees left), or absolute limits [driver-slurm-k8s.md 8]."""
    part = _section(data, "Temperature")
    current, memory = _number(part, "GPU Current Temp"), _number(part, "Memory Current Temp")
    margin = _number(part, "GPU T.Limit Temp")
    if margin is not None or any("T.Limit" in key and _text(part, key) for key in part):
        return Temperature("margin", current, margin, memory)
    # A margin of 0 is the highest operating temperature; so it is here.
    limit = _number(part, "GPU Max Operating Temp", "GPU Slowdown Temp")
    if limit is None:
        return Temperature(None, current, None, memory)
    return Temperature("absolute", current, None if current is None else limit - current, memory)


def _remap(data: Tree) -> Remap:
    rows, pages = _section(data, "Remapped Rows"), _section(data, "Retired Pages")
    pending = [flag for flag in (_yes(rows, "Pending"), _yes(pages, "Pending Page Blacklist")) if flag is not None]
    return Remap(_number(rows, "Correctable Error"), _number(rows, "Uncorrectable Error"),
                 any(pending) if pending else None, _yes(rows, "Remapping Failure Occurred"))


def _ecc_errors(data: Tree) -> dict[str, int]:
    """Sums, as the rows below differ between branches."""
    found: dict[str, int] = {}
    for when in ("Volatile", "Aggregate"):
        part = _section(_section(data, "ECC Errors"), when)
        for kind in ("Correctable", "Uncorrectable"):
            values = [value for key in part if kind in key.split() and (value := _number(part, key)) is not None]
            if values:
                found[f"{when.lower()}_{kind.lower()}"] = sum(values)
    return found


def _events(data: Tree) -> tuple[str, ...] | None:
    """Reasons that are active. The section was renamed; a section of counters with a similar name is another one."""
    part = _section(data, "Clocks Event Reasons", "Clocks Throttle Reasons")
    if not part:
        return None
    return tuple(event.name for event in EVENTS if part.get(event.name) == "Active")


def _clocks(data: Tree) -> dict[str, int]:
    found = {}
    for section, prefix in (("Clocks", ""), ("Max Clocks", "max_")):
        for name in _CLOCKS:
            value = _number(_section(data, section), name)
            if value is not None:
                found[prefix + name.lower()] = value
    return found


def _leaves(data: Tree) -> t.Iterator[str]:
    for value in data.values():
        if isinstance(value, dict):
            yield from _leaves(value)
        else:
            yield value


def _gpu(pci: str, data: Tree) -> Smi:
    return Smi(
        pci=pci_address(pci), name=_text(data, "Product Name"), uuid=_text(data, "GPU UUID"),
        persistence={"Enabled": True, "Disabled": False}.get(_text(data, "Persistence Mode") or ""),
        memory_total_mib=_number(_section(data, "FB Memory Usage"), "Total"),
        bar1_total_mib=_number(_section(data, "BAR1 Memory Usage"), "Total"),
        mig=_mode(data, "MIG Mode"), ecc=_mode(data, "ECC Mode"), ecc_errors=_ecc_errors(data), remap=_remap(data),
        temperature=_temperature(data), events=_events(data), clocks_mhz=_clocks(data), fabric=_fabric(data),
        reset_required=_yes(_section(data, "GPU Reset Status"), "Reset Required"),
        recovery_action=_text(data, "GPU Recovery Action"), is_lost=any(_LOST in leaf for leaf in _leaves(data)),
    )


def gpus(text: str) -> tuple[str | None, tuple[Smi, ...]]:
    """(driver version, GPUs) of ``nvidia-smi -q``."""
    if _HEADING not in text:
        raise ValueError(f"no heading {_HEADING}")
    data = tree(text)
    found = []
    for key, value in data.items():
        match = _GPU.fullmatch(key)
        if match and isinstance(value, dict):
            found.append(_gpu(match.group(1), value))
    return _text(data, "Driver Version"), tuple(found)


def nvlinks(text: str) -> dict[str, dict[int, float | None]]:
    """By UUID the links of ``nvidia-smi nvlink -s`` with their GB/s in one direction; None: not active."""
    found: dict[str, dict[int, float | None]] = {}
    here: dict[int, float | None] | None = None
    for line in text.splitlines():
        head, link = _LINK_GPU.match(line), _LINK.match(line)
        if head:
            here = found.setdefault(head.group(2), {})
        elif link and here is not None:
            rate = re.fullmatch(r"([\d.]+) GB/s", link.group(2).strip())
            here[int(link.group(1))] = float(rate.group(1)) if rate else None
    if not found:
        raise ValueError("no line GPU N: ... (UUID: ...)")
    return found
