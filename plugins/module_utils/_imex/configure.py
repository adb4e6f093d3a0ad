# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of imex_domain from beginning to end: read, check, plan, write, start or stop, read back; or the proof."""
from __future__ import annotations

import contextlib
import dataclasses
import typing as t
from dataclasses import dataclass

from .._host.errors import AidcError, Problem
from .._host.lock import host_lock
from .._host.machine import Machine
from .._nvdriver.model import Step
from . import io, judge, parse, plan
from .model import CONFIG_FILE, NODES_FILE, UNIT, Domain, File, Node, Request

POLL_SECONDS = 2.0
READY = "READY"


@dataclass(frozen=True)
class Proof:
    """``ready`` None: it was not asked, or there is nothing to be proven here."""

    ready: bool | None = None
    daemon: str | None = None
    domain: Domain | None = None
    problems: tuple[Problem, ...] = ()


def state(request: Request, node: Node) -> dict[str, t.Any]:
    """What this module changes. Of config.cfg its own keys alone: others may be secret."""
    text = node.nodes_file.text
    keys = parse.keys(node.config_file.text or "", request.keys) if request.on_host else {}
    return {"active": node.unit.active, "enabled": node.unit.is_enabled, "masked": node.unit.is_masked,
            "nodes": None if text is None else text.split(), "config": keys}


def _predicted(node: Node, steps: t.Sequence[Step]) -> Node:
    unit = node.unit
    now = max(unit.started_at, node.nodes_file.changed_at, node.config_file.changed_at)
    for step in steps:
        verb, what = step.command[0], step.command[1]
        if verb == "write":
            file = File(step.text, int(now), step.mode)
            node = dataclasses.replace(node, nodes_file=file) if what == NODES_FILE else \
                dataclasses.replace(node, config_file=file)
        elif what in ("start", "stop"):
            unit = dataclasses.replace(unit, active="active" if what == "start" else "inactive", started_at=now)
        elif what in ("mask", "unmask"):
            masked = what == "mask"
            unit = dataclasses.replace(unit, load="masked" if masked else "loaded",
                                       enabled="masked" if masked else "disabled")
        else:
            unit = dataclasses.replace(unit, enabled=f"{what}d")
    return dataclasses.replace(node, unit=unit)


def _result(request: Request, before: Node, after: Node, steps: t.Sequence[Step], waits: t.Sequence[dict[str, str]],
            known: bool | None = None, proof: Proof = Proof()) -> dict[str, t.Any]:
    old, new = state(request, before), state(request, after)
    one = plan.package(after)
    notes = proof.problems if request.state == "ready" else plan.before_a_start(request, after)
    return {
        "changed": bool(steps), "before": old, "after": new, "diff": {"before": old, "after": new},
        "commands": [list(step.command) for step in steps], "steps": [step.as_dict() for step in steps],
        "deferred": list(waits), "users_known": known, "domain": request.domain, "owner": request.owner,
        "running": after.unit.is_running, "channels": list(after.channels),
        "version": one.version if one else None, "driver_version": after.driver,
        "restart_required": bool(plan.stale(request, after)),
        "join_required": request.on_host and not after.unit.is_running and bool(plan.differences(request, after)),
        "ready": proof.ready, "daemon": proof.daemon,
        "domain_state": proof.domain.as_dict() if proof.domain else None,
        # A domain of one node is whole by itself, and says nothing of NVLink between nodes.
        "proven_nodes": len(request.nodes) if proof.ready and len(request.nodes) > 1 else 0,
        "findings": [found.as_dict() for found in notes],
    }


def _failed(step: Step, said: str) -> Problem:
    return Problem(" ".join(step.command), said, "success",
                   f"journalctl -u {UNIT}; /var/log/nvidia-imex.log" if step.command[0] == "systemctl" else "")


def _apply(machine: Machine, steps: t.Sequence[Step]) -> None:
    done: list[tuple[str, ...]] = []
    for step in steps:
        try:
            result = io.apply(machine, step)
        except OSError as error:
            raise AidcError([_failed(step, error.strerror or str(error))], done) from error
        if result.state != "ok":
            raise AidcError([_failed(step, result.why() or result.said())], done)
        done.append(step.command)


def _verify(request: Request, wanted: Node, after: Node) -> list[Problem]:
    """What systemd and the files say now, whatever the commands said."""
    found = list(after.problems)
    hint = f"journalctl -u {UNIT}; /var/log/nvidia-imex.log"
    if wanted.unit.is_running != after.unit.is_running:
        found.append(Problem(UNIT, after.unit.active, wanted.unit.active, hint))
    for name in ("enabled", "masked"):
        have, want = state(request, after)[name], state(request, wanted)[name]
        if have != want:
            found.append(Problem(UNIT, f"{name}: {have}", f"{name}: {want}", "systemctl status says more"))
    for path, one, other in ((NODES_FILE, after.nodes_file, wanted.nodes_file),
                             (CONFIG_FILE, after.config_file, wanted.config_file)):
        if one.text != other.text:
            found.append(Problem(path, "another text", "what was written", "does somebody else write it?"))
    return found


def _ask(machine: Machine, request: Request, node: Node) -> Proof:
    bad: list[Problem] = []
    daemon = io.daemon_state(machine, bad)
    if daemon is None:
        return Proof(False, problems=tuple(bad))
    if daemon != READY:
        hint = "it waits for nodes that imported memory before it was killed; IMEX_WAIT_FOR_QUORUM" \
            if daemon == "WAITING_FOR_RECOVERY" else "/var/log/nvidia-imex.log"
        return Proof(False, daemon, problems=(Problem("daemon of this node", daemon, READY, hint),))
    domain = io.domain(machine, bad)
    if domain is None:
        return Proof(False, daemon, problems=tuple(bad))
    # The driver's, as the package may have been replaced below the daemon.
    bad += judge.problems(domain, request.nodes, node.driver)
    return Proof(not bad, daemon, domain, tuple(bad))


def prove(machine: Machine, request: Request, node: Node) -> Proof:
    """Wait, with a bound, until all nodes are there and connected. A mismatch stays, so it is not waited for."""
    if not request.on_host:
        return Proof()
    if not node.unit.is_running:
        return Proof(False, problems=(Problem(UNIT, node.unit.active, "active", "imex_domain starts it"),))
    deadline = machine.monotonic() + request.wait_seconds
    while True:
        proof = _ask(machine, request, node)
        over = machine.monotonic() + POLL_SECONDS > deadline
        if proof.ready or over or (proof.domain and judge.is_permanent(proof.domain)):
            return proof
        machine.sleep(POLL_SECONDS)


def _change(machine: Machine, request: Request, check_mode: bool) -> dict[str, t.Any]:
    node = io.gather(machine)
    problems = plan.check(request, node)
    if problems:
        raise AidcError(problems)
    steps, waits = plan.steps(request, node), plan.waits(request, node)
    known = None
    if any(step.disruptive != "none" for step in steps):
        used = io.use(machine)
        known, held = not used.unseen, plan.busy(request, used)
        steps, waits = ([], [*waits, *held]) if held else (steps, waits)
    if not steps or check_mode:
        return _result(request, node, _predicted(node, steps), steps, waits, known)
    _apply(machine, steps)
    after = io.gather(machine)
    problems = _verify(request, _predicted(node, steps), after)
    if problems:
        raise AidcError(problems, [step.command for step in steps])
    return _result(request, node, after, steps, waits, known)


def configure(machine: Machine, request: Request, check_mode: bool) -> dict[str, t.Any]:
    """Raises AidcError for whatever stands in the way."""
    wrong = plan.values(request)
    if wrong:
        raise AidcError(wrong)
    if request.state == "ready":
        node = io.gather(machine)
        problems = plan.check(request, node)
        if problems:
            raise AidcError(problems)
        return _result(request, node, node, (), (), proof=prove(machine, request, node))
    with contextlib.nullcontext() if check_mode else host_lock(machine, "imex_domain"):
        return _change(machine, request, check_mode)
