# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Parse and merge IMEX's files, and parse nvidia-imex-ctl. Raises ValueError for text that is not its."""
from __future__ import annotations

import json
import re
import typing as t

from .model import CONNECTED, MAP_MISMATCH, VERSION_MISMATCH, Domain, Member, Unit

# nvidia-imex-ctl -q [driver-slurm-k8s.md 1.8; DCGM dcgm_fields.h, field 1503].
WORDS = ("READY", "INITIALIZING", "STARTING_AUTH_SERVER", "WAITING_FOR_PEERS", "WAITING_FOR_RECOVERY", "INIT_GPU",
         "SHUTTING_DOWN", "UNAVAILABLE")
# Cells of the table, by its own legend (samples nvidia-imex-ctl-1 and -2).
_CELLS = {"C": CONNECTED, "I": "invalid, the node was not reachable", "N": "never connected",
          "R": "recovering, the connection was lost", "D": "disconnected, the connection was lost",
          "A": "authenticating", "!V!": VERSION_MISMATCH, "!M!": MAP_MISMATCH}
# Words of -j that were seen; what it says of mismatches is not known, so the table is asked for everything else.
_LINKS = {"CONNECTED": CONNECTED, "INVALID": _CELLS["I"], "NEVER_CONNECTED": _CELLS["N"], "RECOVERING": _CELLS["R"],
          "DISCONNECTED": _CELLS["D"], "AUTHENTICATING": _CELLS["A"]}
# The local node has stars around its address with -H. Older builds have no version (sample nvidia-imex-ctl-2), a node
# that is not reached has an empty one (-3).
_NODE = re.compile(r"Node #(?P<index>\d+)\s+[-*]\s+(?P<address>\S+)(?:\s+\*)?\s+-\s+(?P<status>[A-Z_]+)"
                   r"(?:\s+-\s+Version:[ \t]*(?P<version>\S*))?(?:\s+-\s+Hostname:[ \t]*(?P<name>\S*))?\s*$")
_HEAD = re.compile(r"\s*Nodes From\\To\s+(?P<columns>\d[\d\s]*)$")
_ROW = re.compile(r"\s+(?P<index>\d+)\s+(?P<cells>\S.*)$")
_STATE = re.compile(r"Domain State:\s*(?P<state>\S+)")


def key_line(key: str) -> re.Pattern[str]:
    """A line that sets the key; one that only mentions it in a comment does not."""
    return re.compile(rf"^{re.escape(key)}[ \t]*=[ \t]*(.*)$", re.MULTILINE)


def keys(text: str, names: t.Iterable[str]) -> dict[str, str | None]:
    """Values of these keys in config.cfg; None: not set. Of several lines it is the last one."""
    found = {name: key_line(name).findall(text) for name in names}
    return {name: values[-1].strip() if values else None for name, values in found.items()}


def merge(text: str, wanted: t.Mapping[str, str]) -> str:
    """config.cfg with these keys; comments, other keys and their order stay. Every line of a key has its value."""
    for name, value in wanted.items():
        pattern = key_line(name)
        lines = pattern.findall(text)
        if not lines:
            complete = not text or text.endswith("\n")
            text += f"{name}={value}\n" if complete else f"\n{name}={value}\n"
        elif any(line.strip() != value for line in lines):
            # Not a template: a backslash in the value is one.
            text = pattern.sub(f"{name}={value}".replace("\\", r"\\"), text)
    return text


def unit(text: str) -> Unit:
    """``systemctl show``, with the time of the last start in seconds of the monotonic clock; 0: never.

    In microseconds, which all versions of systemd print alike, and which no step of the wall clock moves.
    """
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if "LoadState" not in values:
        raise ValueError("no LoadState")
    started = values.get("InactiveExitTimestampMonotonic", "")
    if not started.isdigit():
        raise ValueError(f"no time of its start: {started[:40]!r}")
    return Unit(values["LoadState"], values.get("ActiveState", ""), values.get("UnitFileState", ""),
                int(started) / 1e6)


def daemon_state(text: str) -> str:
    """The one word of ``-q``; an error is printed there, too."""
    word = text.strip()
    if word not in WORDS:
        raise ValueError("no state of a daemon")
    return word


def domain_json(text: str) -> Domain:
    """``-N -j`` (sample nvidia-imex-ctl-4): three kinds of status, of the domain, of a node, of a link."""
    data = json.loads(text)
    nodes = data.get("nodes") if isinstance(data, dict) else None
    if not isinstance(nodes, dict) or not nodes or not isinstance(data.get("status"), str):
        raise ValueError("no object with nodes and status")
    members: dict[int, Member] = {}
    links: dict[tuple[int, int], str] = {}
    try:
        for index, node in nodes.items():
            version = node.get("version")
            members[int(index)] = Member(str(node["host"]), str(node["status"]), version, node.get("hostName") or "")
            for other, link in node["connections"].items():
                word = str(link["status"])
                links[int(index), int(other)] = _LINKS.get(word, word)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a node without {error}") from error
    return Domain(members, links, data["status"])


def is_unknown(domain: Domain) -> bool:
    """Whether a link has a word that is in no list: a mismatch, as far as is known."""
    return any(word not in _LINKS.values() for word in domain.links.values())


def domain_text(text: str) -> Domain:
    """``-N`` as a table."""
    members: dict[int, Member] = {}
    links: dict[tuple[int, int], str] = {}
    columns: list[int] = []
    state = ""
    for line in text.splitlines():
        node, head, row, end = _NODE.match(line), _HEAD.match(line), _ROW.match(line), _STATE.match(line)
        if node:
            members[int(node["index"])] = Member(node["address"], node["status"], node["version"], node["name"] or "")
        elif head:
            columns = [int(one) for one in head["columns"].split()]
        elif row and columns:
            cells = row["cells"].split()
            links.update({(int(row["index"]), column): _CELLS.get(cell, cell)
                          for column, cell in zip(columns, cells)})
        elif end:
            state = end["state"]
    if not members or not state:
        raise ValueError(f"no {'line Domain State' if members else 'line Node #'}")
    return Domain(members, links, state)
