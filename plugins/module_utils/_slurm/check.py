# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Whether files that were rendered, or that somebody wants to install, agree with each other. Pure.

It reads the texts again and knows nothing of how they were made, so that it also judges files of others.
"""
from __future__ import annotations

import collections
import re
import typing as t
from dataclasses import dataclass, field

from . import config_parse, hostlist
from .model import Finding

# A path of one architecture in a file that nodes of others share [3.1].
_MULTIARCH = re.compile(r"/lib(?:exec)?/(?:x86_64|aarch64|arm)[A-Za-z0-9_-]*-linux-gnu[A-Za-z0-9_]*\b|/lib64/slurm\b")
_CORES = re.compile(r"[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*")
_GPU = re.compile(r"gpu(?::[^:,(]+)?:([0-9]+)")
_YAML_NODES = re.compile(r"""^\s*nodes:\s*["']?([^"'#]+?)["']?\s*$""", re.MULTILINE)
_DEFAULT = "default"
NODE_FILES = ("slurm.conf", "aidc-nodes.conf", "aidc-partitions.conf")
GRES_FILES = ("gres.conf", "aidc-gres.conf")


@dataclass
class _Seen:
    """What all files say: node to its GPUs and cores, node to the GPUs of gres.conf, and so on."""

    gpus: dict[str, int] = field(default_factory=dict)
    cores: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def error(self, what: str, got: str, wanted: str, hint: str = "") -> None:
        self.findings.append(Finding("error", what, got, wanted, hint))

    def names(self, text: str | None, where: str, pattern: re.Pattern[str] | None = None) -> list[str]:
        try:
            return hostlist.expand(text or "", pattern) if pattern else hostlist.expand(text or "")
        except hostlist.HostlistError as error:
            self.error(where, str(error), "a host list")
            return []


def _lines(seen: _Seen, name: str, text: str) -> list[config_parse.Line]:
    for found in dict.fromkeys(_MULTIARCH.findall(text)):
        seen.error(name, found, "no path of one architecture in a file that all nodes share",
                   "leave PluginDir out; each build of Slurm knows its own")
    try:
        return config_parse.lines(text)
    except config_parse.ConfError as error:
        seen.error(name, str(error), "lines of Key=Value")
        return []


def _number(line: config_parse.Line, key: str) -> int:
    value = line.get(key) or ""
    return int(value) if value.isdigit() else 0


def _node(seen: _Seen, line: config_parse.Line, where: str) -> None:
    names = seen.names(line.get("nodename"), where)
    addresses = seen.names(line.get("nodeaddr"), where)
    if addresses and len(addresses) != len(names):
        seen.error(where, f"{len(addresses)} addresses for {len(names)} nodes", "one for each")
    if not _number(line, "realmemory"):
        seen.error(where, "no RealMemory", "MiB of memory", "Slurm takes 1 MiB without it, and no job fits")
    gpus = _GPU.search(line.get("gres") or "")
    cores = (_number(line, "sockets") or _number(line, "socketsperboard") or 1) * (_number(line, "corespersocket") or 1)
    for name in names:
        if name.lower() == _DEFAULT:
            continue
        if name in seen.gpus:
            seen.error(f"NodeName {name}", "two lines", "one")
        seen.gpus[name] = int(gpus[1]) if gpus else 0
        seen.cores[name] = cores


def _partition(seen: _Seen, line: config_parse.Line, where: str) -> None:
    nodes = line.get("nodes") or ""
    if nodes.upper() == "ALL" or (line.get("partitionname") or "").lower() == _DEFAULT:
        return
    names = seen.names(nodes, where)
    lost = [name for name in names if name not in seen.gpus]
    if lost:
        seen.error(f"partition {line.get('partitionname')}", hostlist.compress(lost), "nodes with a NodeName line")
    if len(set(names)) != len(names):
        seen.error(f"partition {line.get('partitionname')}", "a node twice", "each node once")


def _gres(seen: _Seen, line: config_parse.Line, where: str) -> None:
    files = seen.names(line.get("file"), where, hostlist.FILE)
    count = len(files) or _number(line, "count") or 1
    cores = line.get("cores") or ""
    if cores and not _CORES.fullmatch(cores):
        seen.error(where, f"Cores={cores}", "numbers such as 0-71")
        cores = ""
    last = max((int(number) for number in re.findall("[0-9]+", cores)), default=0)
    names = seen.names(line.get("nodename"), where)
    lost = [name for name in names if name not in seen.gpus]
    if lost:
        seen.error(where, hostlist.compress(lost), "nodes with a NodeName line")
    beyond = [name for name in names if name in seen.cores and last >= seen.cores[name]]
    if beyond:
        seen.error(where, f"Cores={cores} for {hostlist.compress(beyond)}", f"0 to {seen.cores[beyond[0]] - 1}",
                   "the number of a core, not of a thread")
    for name in names:
        seen.files[name] = seen.files.get(name, 0) + count


def _gres_counts(seen: _Seen) -> None:
    wrong: dict[tuple[int, int], list[str]] = {}
    for name, count in seen.gpus.items():
        if seen.files.get(name, 0) != count:
            wrong.setdefault((seen.files.get(name, 0), count), []).append(name)
    for (got, wanted), names in wrong.items():
        seen.error(f"GPUs of {hostlist.compress(names)}", f"{got} in gres.conf", f"{wanted}, as NodeName says",
                   "Slurm marks such a node invalid")


def _members(seen: _Seen, members: t.Sequence[str], where: str, is_complete: bool) -> None:
    lost = [name for name in members if name not in seen.gpus]
    if lost:
        seen.error(where, hostlist.compress(lost), "nodes with a NodeName line")
    twice = [name for name, count in collections.Counter(members).items() if count > 1]
    if twice:
        seen.error(where, f"{hostlist.compress(twice)} twice", "each node once")
    inside = set(members)
    outside = [name for name in seen.gpus if name not in inside]
    if is_complete and outside:
        seen.error(where, f"not {hostlist.compress(outside)}", "every node", "a node outside of it is never picked")


def _topology_conf(seen: _Seen, lines: t.Iterable[config_parse.Line]) -> None:
    where, members, sizes, counts = "topology.conf", [], [], {}
    for line in lines:
        names = seen.names(line.get("nodes"), f"{where}, line {line.number}")
        members += names
        if line.first == "blockname":
            counts[line.get("blockname") or ""] = len(names)
        sizes += [int(size) for size in (line.get("blocksizes") or "").split(",") if size.isdigit()]
    _members(seen, members, where, True)
    if counts and not sizes:
        seen.error(where, "no BlockSizes", "the base size of blocks")
    for name, count in counts.items():
        if sizes and count < sizes[0]:
            seen.error(f"block {name}", f"{count} nodes", f"{sizes[0]} or more, as BlockSizes says",
                       "slurmctld refuses a block that is smaller")


def _nodes_and_partitions(seen: _Seen, parsed: t.Mapping[str, list[config_parse.Line]]) -> None:
    """All nodes first: partitions may stand in another file."""
    for key, handle in (("nodename", _node), ("partitionname", _partition)):
        for name in NODE_FILES:
            for line in parsed.get(name, ()):
                if line.first == key:
                    handle(seen, line, f"{name}, line {line.number}")


def _gpus(seen: _Seen, parsed: t.Mapping[str, list[config_parse.Line]]) -> None:
    for name in GRES_FILES:
        for line in parsed.get(name, ()):
            if line.get("name") == "gpu":
                _gres(seen, line, f"{name}, line {line.number}")
    _gres_counts(seen)


def texts(files: t.Mapping[str, str]) -> list[Finding]:
    """What does not fit together; empty for files that do."""
    seen = _Seen()
    parsed = {name: _lines(seen, name, text) for name, text in files.items() if not name.endswith(".yaml")}
    _nodes_and_partitions(seen, parsed)
    # Without nodes (others have them) nothing can be compared with them.
    if not seen.gpus:
        return seen.findings
    _gpus(seen, parsed)
    if "topology.conf" in parsed:
        _topology_conf(seen, parsed["topology.conf"])
    for nodes in _YAML_NODES.findall(files.get("topology.yaml", "")):
        _members(seen, seen.names(nodes, "topology.yaml"), "topology.yaml", False)
    return seen.findings
