# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Slurm's daemons: does a new slurm.conf parse, do they run, have they taken it over, and what do they complain of."""
from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
import typing as t
from pathlib import Path

from .._host.errors import Problem
from .._host.files import read_text
from .._host.machine import Machine
from . import config_changes, config_parse, hostlist
from .config_model import Request

POLL_SECONDS = 0.5
_COMPLAINT = re.compile(r"\b(?:fatal|error)\b", re.IGNORECASE)
_SHOWN = re.compile(r"^\s*([A-Za-z][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$")
# Lines of the daemon's own words that are shown.
_LINES = 6
# Files with lines of Key=Value. Others lie beside them, such as plugstack.conf, with a form of their own.
_READ = ("slurm.conf", "aidc-", "gres.conf", "cgroup.conf", "topology.conf")
# Of another file than slurm.conf, which may have a secret beside it.
_NOT_COPIED = ("slurmdbd",)


def _fill(machine: Machine, request: Request, folder: Path) -> None:
    """A folder as the host's will be: what is there, then ours."""
    real = machine.path(request.directory)
    for path in sorted(real.glob("*.conf")) + sorted(real.glob("*.yaml")):
        if path.name not in request.absent and not path.name.startswith(_NOT_COPIED) and path.is_file():
            shutil.copyfile(path, folder / path.name)
    for name, text in request.files.items():
        if not name.startswith(_NOT_COPIED):
            (folder / name).write_text(text, encoding="utf-8")


def _includes(folder: Path) -> list[tuple[str, str]]:
    """(file, what it includes) of all files that are read; one that is no file of lines has none."""
    found: list[tuple[str, str]] = []
    for path in sorted(path for path in folder.glob("*.conf") if path.name.startswith(_READ)):
        with contextlib.suppress(config_parse.ConfError):
            found += [(path.name, line.pairs[0][1]) for line in config_parse.lines(
                path.read_text(encoding="utf-8", errors="replace")) if line.first == "include"]
    return found


def _lost_includes(machine: Machine, request: Request, folder: Path) -> list[Problem]:
    """Slurm waits a minute for each file that it shall include and that is not there."""
    found = []
    for file, name in _includes(folder):
        # A name with a percent sign is made by Slurm, of the host's name and so on.
        beside = name[len(request.directory) + 1:] if name.startswith(f"{request.directory}/") else name
        real = machine.path(name) if beside.startswith("/") else folder / beside
        if "%" not in name and not real.exists():
            found.append(Problem(f"{request.path(file)}: Include {name}", "no such file", "a file that is there"))
    return found


def not_included(machine: Machine, request: Request) -> list[Problem]:
    """Parts of ours (aidc-*.conf) for which the site's own files have no Include. Without any of Slurm's: none."""
    folder = machine.path(request.directory)
    if "slurm.conf" in request.files or not (folder / "slurm.conf").exists():
        return []
    try:
        names = {name.rpartition("/")[2] for _file, name in _includes(folder)}
    except OSError as error:
        return [Problem(request.directory, error.strerror or str(error), "the site's files, to see what they include")]
    homes: dict[str, list[str]] = {}
    for name in request.files:
        if name.startswith("aidc-") and name not in names:
            homes.setdefault("gres.conf" if "gres" in name else "slurm.conf", []).append(f"Include {name}")
    return [Problem(request.path(home), f"a file of the site without {', '.join(lines)}", "the lines in it",
                    "state: installed has put our files beside it, and no daemon was touched; add the lines on all "
                    "hosts and run it again")
            for home, lines in homes.items()]


def parse_problems(machine: Machine, request: Request) -> list[Problem]:
    """What Slurm's own reader says of the files. slurmctld has no option to test them; every command reads them.

    Of a host without slurm.conf (configless) there is nothing to read.
    """
    if request.role != "controller":
        return []
    with tempfile.TemporaryDirectory(prefix="aidc-slurm-") as name:
        folder = Path(name)
        try:
            _fill(machine, request, folder)
        except OSError as error:
            return [Problem(name, error.strerror or str(error), "room for a copy of the files")]
        conf, lost = folder / "slurm.conf", _lost_includes(machine, request, folder)
        if lost or not conf.exists():
            return lost
        asked = machine.tool("env", f"SLURM_CONF={conf}", "scontrol", "show", "hostnames", "aidc[1-2]")
    said = [line for line in asked.stderr.splitlines() if _COMPLAINT.search(line)]
    if asked.state == "ok" and not said:
        return []
    got = "; ".join(said[:_LINES]) or asked.why()
    return [Problem(f"{request.directory}/slurm.conf", got.replace(f"{folder}/", ""), "files that Slurm reads",
                    "scontrol was given them as they would be")]


def complaints(machine: Machine, request: Request, name: str) -> str:
    """The last errors of a daemon, from the journal and from its own log file."""
    asked = machine.tool("journalctl", "-u", f"{name}.service", "-n", "50", "--no-pager", "-o", "cat")
    lines = asked.stdout.splitlines() if asked.state == "ok" else []
    log = read_text(machine.path(f"/var/log/slurm/{name}.log")) or ""
    found = [line.strip() for line in [*lines, *log[-16_384:].splitlines()[-50:]] if _COMPLAINT.search(line)]
    return "; ".join(list(dict.fromkeys(found))[-_LINES:]) or "nothing in the journal"


def _is_active(machine: Machine, name: str) -> bool:
    asked = machine.tool("systemctl", "show", "--property=ActiveState", f"{name}.service")
    return asked.state == "ok" and "ActiveState=active" in asked.stdout.splitlines()


def _answers(machine: Machine, name: str) -> bool:
    """slurmctld is up when it answers; a backup that waits for its turn answers, too.

    With a backup the other one's answer is none of ours, where ping names us at all.
    """
    if not _is_active(machine, name):
        return False
    if name != "slurmctld":
        return True
    asked = machine.tool("scontrol", "ping")
    own = (read_text(machine.path("/proc/sys/kernel/hostname")) or "").strip().split(".")[0]
    lines = asked.stdout.splitlines()
    ours = [line for line in lines if own and f" at {own} is " in line] or lines
    return asked.state == "ok" and any(line.endswith(" is UP") for line in ours)


def wait(machine: Machine, request: Request, name: str) -> Problem | None:
    """Until the daemon runs and answers; why not where it does not within its time."""
    end = machine.monotonic() + request.start_seconds
    while not _answers(machine, name):
        if machine.monotonic() >= end:
            return Problem(f"{name}.service", f"no answer within {request.start_seconds:g} s: "
                           f"{complaints(machine, request, name)}", "a daemon that runs")
        machine.sleep(POLL_SECONDS)
    # One that dies of what it reads a moment later has been seen active.
    machine.sleep(POLL_SECONDS)
    if _is_active(machine, name):
        return None
    return Problem(f"{name}.service", f"it ended at once: {complaints(machine, request, name)}", "a daemon that runs")


# -- after a reconfigure ----------------------------------------------------------------------------------


def _shown(machine: Machine, bad: list[Problem]) -> dict[str, str]:
    asked = machine.tool("scontrol", "show", "config")
    if asked.state != "ok":
        bad.append(Problem("scontrol show config", asked.why(), "the settings that slurmctld has"))
        return {}
    pairs = (_SHOWN.match(line) for line in asked.stdout.splitlines())
    return {pair[1].lower(): pair[2] for pair in pairs if pair}


def _same(shown: str, value: str) -> bool:
    """`300 sec` is 300, and lists and words may have other letters."""
    return shown.lower().replace(" sec", "") == value.lower()


def _not_taken(shown: t.Mapping[str, str], found: t.Iterable[config_changes.Change]) -> list[Problem]:
    """Settings that slurmctld still has as they were; judged are those that it shows in the words of the file."""
    return [Problem(f"slurmctld's {change.key}", shown[change.key], change.after or "its default",
                    "it kept its old configuration")
            for change in found if change.kind == "key" and change.key in shown and change.before
            and _same(shown[change.key], change.before) and not _same(shown[change.key], change.after)]


def _wanted_nodes(files: t.Mapping[str, str]) -> set[str]:
    """Nodes of all partitions, as those are what sinfo shows."""
    found: set[str] = set()
    for name in ("slurm.conf", "aidc-partitions.conf"):
        for line in config_parse.lines(files.get(name, "")):
            nodes = line.get("nodes") or ""
            if line.first == "partitionname" and nodes and nodes.upper() != "ALL":
                found.update(hostlist.expand(nodes))
    return found


def taken_over(machine: Machine, request: Request, found: t.Sequence[config_changes.Change]) -> list[Problem]:
    """A reconfigure that failed keeps the old configuration and only logs it [3.5]: so slurmctld is asked."""
    bad: list[Problem] = []
    shown = _shown(machine, bad)
    bad += _not_taken(shown, found)
    wanted = _wanted_nodes(request.files)
    if wanted and any(change.kind in ("nodes", "partition") for change in found):
        asked = machine.tool("sinfo", "-a", "-h", "-o", "%N")
        try:
            have = {name for line in asked.stdout.split() for name in hostlist.expand(line)}
        except hostlist.HostlistError:
            have = set()
        lost = sorted(wanted - have, key=hostlist.natural)
        if asked.state != "ok" or lost:
            got = asked.why() if asked.state != "ok" else f"no {hostlist.compress(lost)}"
            bad.append(Problem("sinfo", got, "all nodes of the partitions", "slurmctld kept its old configuration"))
    if not bad:
        return []
    return [*bad, Problem("slurmctld", complaints(machine, request, "slurmctld"), "no complaints")]
