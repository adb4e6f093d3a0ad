# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Ask slurmctld for nodes, tell it what to do with them, wait for what follows."""
from __future__ import annotations

import typing as t

from .._host.errors import AidcError, Problem
from .._host.machine import Machine
from .._host.runner import Result
from . import node_parse, node_plan
from .node_model import Request, SlurmNode, Step

HINTS = {
    "missing": "install the package slurm-client (Debian, Ubuntu) or slurm (RHEL); on a controller it is there",
    "timeout": "slurmctld does not answer: scontrol ping",
    "failed": "does slurmctld run (scontrol ping), is munge's key the same, and is this user an operator of Slurm?",
}
READ_PER_CALL = 500
# What scontrol prints where it has no JSON: an unknown option (22.05), or a plugin that is not installed.
_ASKED = "scontrol show node"


def problem_of(result: Result, wanted: str) -> Problem:
    return Problem(" ".join(result.argv[:3]), result.why(), wanted, HINTS.get(result.state, HINTS["failed"]))


def expand(machine: Machine, entries: t.Sequence[str]) -> tuple[str, ...]:
    """Names in the order given, each once; host lists (n[01-04]) as Slurm itself expands them."""
    found: list[str] = []
    for entry in entries:
        if "[" not in entry and "," not in entry:
            found.append(entry.strip())
            continue
        result = machine.tool("scontrol", "show", "hostnames", entry)
        names = result.stdout.split()
        if result.state != "ok" or not names:
            raise AidcError([problem_of(result, f"the names of {entry}")])
        found += names
    return tuple(name for name in dict.fromkeys(found) if name)


def _text(machine: Machine, asked: str) -> list[SlurmNode]:
    result = machine.tool("scontrol", "-o", "show", "node", asked)
    wanted = "one line of each node"
    # It exits 1 for a name that it does not know, and prints the others.
    if result.state == "ok" or (result.state == "failed" and (
            "NodeName=" in result.stdout or node_parse.not_found(result.stdout))):
        try:
            return node_parse.text_nodes(result.stdout)
        except ValueError as error:
            raise AidcError([Problem(_ASKED, result.unreadable(error), wanted, HINTS["failed"])]) from None
    raise AidcError([problem_of(result, wanted)])


def _json(machine: Machine, asked: str) -> list[SlurmNode] | None:
    """None where this scontrol has no JSON, or what it prints cannot be read: then the text is asked for."""
    result = machine.tool("scontrol", "--json", "show", "node", asked)
    if result.state in ("missing", "timeout"):
        raise AidcError([problem_of(result, "its nodes as JSON")])
    try:
        return node_parse.json_nodes(result.stdout) if result.stdout.lstrip().startswith("{") else None
    except ValueError:
        return None


def read(machine: Machine, names: t.Sequence[str]) -> dict[str, SlurmNode]:
    """These nodes by name; one that Slurm does not know is not among them, and what was not asked for neither."""
    found: dict[str, SlurmNode] = {}
    has_json = True
    for start in range(0, len(names), READ_PER_CALL):
        chunk = names[start:start + READ_PER_CALL]
        nodes = _json(machine, ",".join(chunk)) if has_json else None
        if nodes is None:
            has_json, nodes = False, _text(machine, ",".join(chunk))
        wanted = set(chunk)
        found.update({node.name: node for node in nodes if node.name in wanted})
    return found


def apply(machine: Machine, steps: t.Sequence[Step]) -> None:
    done: list[tuple[str, ...]] = []
    for step in steps:
        result = machine.tool(*step.command)
        if result.state != "ok":
            raise AidcError([Problem(" ".join(step.command[2:]), result.why(), "success", HINTS[result.state])], done)
        done.append(step.command)


def wait(machine: Machine, request: Request, nodes: dict[str, SlurmNode], seconds: float) -> dict[str, SlurmNode]:
    """The nodes when there is nothing left to wait for, or the time is over; only those that wait are asked again."""
    deadline = machine.monotonic() + seconds
    found = dict(nodes)
    while True:
        left = [name for name in request.nodes if not node_plan.settled(request, found[name])]
        rest = deadline - machine.monotonic()
        if not left or rest <= 0:
            return found
        machine.sleep(min(request.poll_seconds, rest))
        found.update(read(machine, left))
