# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""From what is wanted of nodes and how they are: what stands in the way, the steps, how they will be. Pure."""
from __future__ import annotations

import dataclasses
import typing as t

from .._host.errors import Problem
from . import reason as reasons
from .node_model import DRAINS, Request, SlurmNode, Step, invalid

# One argument of a command may have 128 KiB [Linux include/uapi/linux/binfmts.h, MAX_ARG_STRLEN].
NODES_PER_COMMAND = 500
Nodes = t.Mapping[str, SlurmNode]


def _who(node: SlurmNode) -> str:
    by = f", set by {node.reason_user}" if node.reason_user else ""
    return f"{node.state.text()}, reason '{node.reason.raw}'{by}"


def held(request: Request, node: SlurmNode) -> bool:
    """Whether the node's reason is not ours to replace: somebody else's, or that of another source or run of ours.

    slurmctld itself replaces "Not responding" when a node is drained [slurm-24.11 node_mgr.c, _drain_node].
    """
    reason = node.reason
    if reason.kind == "none":
        # Draining a node takes its FAIL away [slurm-24.11 node_mgr.c, update_node].
        return node.state.has("FAIL")
    if reason.kind == "foreign":
        return reasons.what_of(reason.raw) != "response"
    return reason.source != request.source or bool(
        request.run_id and reason.run_id and request.run_id != reason.run_id)


def _check_drain(request: Request, node: SlurmNode) -> list[Problem]:
    if request.when_held == "keep" or not held(request, node):
        return []
    return [Problem(node.name, _who(node), f"a node that nobody but {request.source} holds",
                    "its holder must release it first; when_held=keep takes such a node as it is")]


def needs_resume(request: Request, node: SlurmNode) -> bool:
    if request.state == "undrained":
        return node.state.drain
    return node.state.drain or node.state.down or node.state.has("FAIL")


def _invalid_problems(node: SlurmNode) -> list[Problem]:
    return [Problem(f"{node.name} {entry['field']}".strip(), entry["got"], entry["wanted"],
                    "slurmctld resumes no node with INVALID_REG: repair the node, or correct slurm.conf and gres.conf, "
                    "then scontrol reconfigure") for entry in invalid(node)]


def _check_resume(request: Request, node: SlurmNode) -> list[Problem]:
    if node.state.invalid:
        return _invalid_problems(node)
    if not needs_resume(request, node):
        return []
    if node.state.reboot != "none":
        # It would take the reboot's flags away [slurm-24.11 node_mgr.c, update_node].
        return [Problem(node.name, f"{node.state.text()}: a reboot is {node.state.reboot}", "a node that is up",
                        "wait for the reboot; Slurm resumes the node itself with nextstate=resume")]
    if request.force_reason is not None and node.reason.raw == request.force_reason.strip():
        return []
    if not node.reason.is_of(request.source, request.run_id):
        wanted = reasons.format_reason(request.source, request.run_id or None, "...")
        return [Problem(node.name, _who(node), f"a reason of ours, '{wanted}'",
                        "only its holder knows whether it may run jobs; force_reason takes the whole reason, word by "
                        "word")]
    added = reasons.blocking(node.reason, node.state.invalid)
    return [Problem(node.name, f"reason with '{text}' added to it", "nothing that is not settled",
                    "look at the node, then give the whole reason in force_reason") for text in added]


def check(request: Request, nodes: Nodes) -> list[Problem]:
    """All that stands in the way, for all nodes."""
    found = [] if request.nodes else [Problem("nodes", "an empty list", "names of nodes")]
    found += [Problem(name, "no such node in Slurm", "a node of slurm.conf", "sinfo -N lists them")
              for name in request.nodes if name not in nodes]
    if request.state in DRAINS:
        found += reasons.problems_of(request.source, request.run_id, request.reason)
    one = _check_drain if request.state in DRAINS else _check_resume
    for name in request.nodes:
        if name in nodes:
            found += one(request, nodes[name])
    return found


def _drain_why(request: Request, node: SlurmNode) -> str | None:
    """Why the node must be told; None where it holds already."""
    if held(request, node):
        return None
    if not node.state.drain:
        return "it is not drained"
    if node.reason.kind != "ours":
        return "the drain has no reason of ours"
    # To say it anew would lose what Slurm has added.
    if node.reason.base == request.text or node.reason.appended:
        return None
    return "the reason says something else"


def _why(request: Request, node: SlurmNode) -> str | None:
    if request.state in DRAINS:
        return _drain_why(request, node)
    if not needs_resume(request, node):
        return None
    return "it is drained" if node.state.drain else f"it is {node.state.base.lower()}"


def _command(request: Request, names: t.Sequence[str]) -> tuple[str, ...]:
    start = ("scontrol", "update", f"nodename={','.join(names)}")
    if request.state in DRAINS:
        return (*start, "state=drain", f"reason={request.text}")
    return (*start, "state=resume" if request.state == "resumed" else "state=undrain")


def plan(request: Request, nodes: Nodes) -> list[Step]:
    """Nodes with the same why in one command."""
    groups: dict[str, list[str]] = {}
    for name in request.nodes:
        why = _why(request, nodes[name])
        if why is not None:
            groups.setdefault(why, []).append(name)
    chunks = [(why, names[start:start + NODES_PER_COMMAND]) for why, names in groups.items()
              for start in range(0, len(names), NODES_PER_COMMAND)]
    return [Step(_command(request, names), why, tuple(names)) for why, names in chunks]


def _after(request: Request, node: SlurmNode) -> SlurmNode:
    state = node.state
    if request.state in DRAINS:
        flags = (state.flags - {"FAIL"}) | {"DRAIN"}
        return dataclasses.replace(node, state=dataclasses.replace(state, flags=frozenset(flags)),
                                   reason=reasons.parse(request.text))
    down = request.state == "undrained" and state.down
    left = state.flags - ({"DRAIN"} if request.state == "undrained" else {"DRAIN", "FAIL"})
    base = "IDLE" if state.down and not down else state.base
    # slurmctld clears the reason of a node that is neither down nor drained nor failing [update_node].
    reason = node.reason if down or "FAIL" in left else reasons.Reason()
    return dataclasses.replace(node, state=dataclasses.replace(state, base=base, flags=frozenset(left)), reason=reason)


def predict(request: Request, nodes: Nodes, steps: t.Sequence[Step]) -> dict[str, SlurmNode]:
    told = {name for step in steps for name in step.nodes}
    return {name: _after(request, node) if name in told else node for name, node in nodes.items()}


def verify(request: Request, nodes: Nodes, steps: t.Sequence[Step]) -> list[Problem]:
    """What does not hold although every command reported success."""
    found = []
    for name in (name for step in steps for name in step.nodes):
        node = nodes.get(name)
        if node is None:
            found.append(Problem(name, "gone", "a node of slurm.conf", "read back after all steps"))
        elif request.state in DRAINS and not (node.state.drain and node.reason.base == request.text):
            found.append(Problem(name, _who(node), f"DRAIN, reason '{request.text}'",
                                 "read back after all steps; did somebody else set it at the same moment?"))
        elif request.state not in DRAINS and needs_resume(request, node):
            found.append(Problem(name, _who(node), request.state, "read back after all steps"))
    return found


def settled(request: Request, node: SlurmNode) -> bool:
    """Whether there is nothing left to wait for."""
    if request.state == "drained":
        return node.state.drained
    if request.state == "draining":
        return True
    # ``idle*`` for some seconds after a resume is normal [driver-slurm-k8s 3.6]; who sleeps does not answer.
    return node.state.responding or node.state.down or node.state.has("POWERED_DOWN", "POWERING_UP")


def unsettled(request: Request, nodes: Nodes, waited_seconds: float) -> list[Problem]:
    """After the time is over: what each node still is."""
    hints = {
        "jobs": "its jobs still run: wait longer, or end them", "down": "its slurmd does not answer: look at the node",
        "reboot": "a reboot is under way: wait for it", "": "look at scontrol show node",
    }
    found = []
    for name in request.nodes:
        state = nodes[name].state
        if settled(request, nodes[name]):
            continue
        key = "jobs" if state.jobs else "reboot" if state.reboot != "none" else "" if (
            state.responding and not state.down) else "down"
        wanted = "IDLE+DRAIN and not COMPLETING" if request.state == "drained" else "an answer of its slurmd"
        found.append(Problem(name, f"{state.text()} after {waited_seconds:g} s", wanted, hints[key]))
    return found


def left_invalid(request: Request, nodes: Nodes) -> list[Problem]:
    """A resumed node that registers again with too little is drained again by Slurm."""
    return [problem for name in request.nodes for problem in _invalid_problems(nodes[name])
            ] if request.state not in DRAINS else []
