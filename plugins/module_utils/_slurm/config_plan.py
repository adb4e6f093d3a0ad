# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""From what is wanted and what is there: what is wrong, the steps, the state before and after. Pure."""
from __future__ import annotations

import hashlib
import re
import typing as t

from .._host.errors import Problem
from . import check as checks
from . import config_changes
from .config_model import OURS, RESTART_FILE, Action, Node, Plan, Request, Step, stronger

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*\.(?:conf|yaml)")
_DOWN = ("inactive", "failed", "deactivating", "not-found", "unknown")


def _files(request: Request, node: Node) -> tuple[dict[str, str], dict[str, str]]:
    """All texts of the names that we are given, before and after."""
    before = {name: present.text for name, present in node.files.items()}
    return before, {**{name: text for name, text in before.items() if name not in request.absent}, **request.files}


def _foreign(request: Request, node: Node) -> list[Problem]:
    if request.take_over:
        return []
    names = [*request.files, *request.absent]
    return [Problem(request.path(name), "a file that is not ours", "our own file, or none",
                    "take_over: true replaces it and keeps the old one; or ownership: include")
            for name in names if name in node.files and not node.files[name].text.startswith(OURS)]


def check(request: Request, node: Node) -> list[Problem]:
    found = [Problem("files", name, "names of Slurm's files such as slurm.conf, without a folder")
             for name in (*request.files, *request.absent) if not _NAME.fullmatch(name)]
    found += [Problem("files", f"{name} in files and in absent", "one of them")
              for name in request.files if name in request.absent]
    if found:
        return found
    found += [Problem(finding.object, finding.got, finding.wanted, finding.hint)
              for finding in checks.texts(request.files) if finding.severity == "error"]
    found += [Problem(request.path(name), "a text without our header", f"one that begins with {OURS!r}",
                      "aidc.gpu_cluster.slurm_render makes them")
              for name, text in request.files.items() if not text.startswith(OURS)]
    missing = {request.owner(name) for name in request.files} - node.users.keys()
    found += [Problem(f"user {name}", "nobody of this name", "SlurmUser",
                      "the package slurm-wlm-basic-plugins makes it")
              for name in sorted(missing)]
    if request.state == "active":
        found += [Problem(f"{name}.service", node.services[name], "a unit that can be started", "is the package there?")
                  for name in request.services if node.services.get(name) in ("masked", "not-found")]
    return [*found, *_foreign(request, node)]


def _number(node: Node, owner: str) -> int:
    """Two names may be one user."""
    return node.users[owner][0] if owner in node.users else -1


def _writes(request: Request, node: Node) -> list[tuple[str, str]]:
    """(name, why) of each file that is not as it should be."""
    found = []
    for name, text in request.files.items():
        have = node.files.get(name)
        if have is None:
            found.append((name, "there is none"))
        elif have.text != text:
            found.append((name, "it differs"))
        elif have.mode != request.mode(name) or _number(node, have.owner) != _number(node, request.owner(name)):
            found.append((name, f"it is {have.owner}'s with mode {have.mode:04o}"))
    return found


def _need(request: Request, node: Node) -> tuple[Action, Action, list[str]]:
    """What the daemon of this role and the slurmd of all nodes need, by what differs and what a run before left."""
    found = config_changes.changes(*_files(request, node))
    controller: Action = "none"
    compute: Action = "none"
    why: list[str] = []
    if node.version is not None:
        controller, compute, why = config_changes.decide(node.version, found)
    if request.role == "dbd":
        is_its = any(change.kind == "dbd" for change in found)
        action: Action = "restart" if is_its else "none"
        why = ["slurmdbd.conf: restart"] if is_its else []
    else:
        action = {"controller": controller, "compute": compute}.get(request.role, "none")
    if node.pending:
        action = stronger(action, node.pending.action)
        compute = stronger(compute, node.pending.compute_action)
        why = list(dict.fromkeys([*node.pending.why, *why]))
    return action, compute, why


def _act(request: Request, node: Node, action: Action, why: t.Sequence[str]) -> list[Step]:
    """Of the services; one that does not run is started, whatever has changed."""
    steps, reason = [], "; ".join(why) or "the files changed"
    for name in request.services:
        word = node.services.get(name, "unknown")
        if word in _DOWN:
            steps.append(Step(("systemctl", "restart", f"{name}.service"), f"it is {word}"))
        elif action == "restart":
            steps.append(Step(("systemctl", "restart", f"{name}.service"), reason))
    if action == "reconfigure" and not steps:
        steps.append(Step(("scontrol", "reconfigure"), reason))
    return steps


def _restart_id(request: Request) -> str:
    """Of these files, so that a run that is begun again tells the nodes the same."""
    text = "\0".join(f"{name}\0{request.files[name]}" for name in sorted(request.files))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plan(request: Request, node: Node) -> Plan:
    writes = _writes(request, node)
    removes = [name for name in request.absent if name in node.files]
    action, compute, why = _need(request, node)
    changed = [name for name, _why in writes] + removes
    steps = []
    if changed and not node.pending:
        steps += [Step(("keep", request.kept(name)), "to go back to")
                  for name in changed if name in node.files]
    if changed:
        steps.append(Step(("write", request.pending_file), "the daemons have not read the files"))
    steps += [Step(("write", request.path(name)), reason) for name, reason in writes]
    steps += [Step(("remove", request.path(name)), "Slurm would read it") for name in removes]
    done: list[Step] = []
    if request.state == "active":
        done = _act(request, node, action, why)
        if done and action == "none":
            action, why = "restart", [done[0].why]
    restart_id = node.restart_id
    if request.role == "controller" and request.state == "active" and compute == "restart":
        restart_id = _restart_id(request)
        if restart_id != node.restart_id:
            done.append(Step(("write", RESTART_FILE), "every slurmd has to be started again: " + "; ".join(why)))
    # Where there is no daemon, nobody comes to read them later.
    if (request.state == "active" or not request.services) and (changed or node.pending):
        done.append(Step(("remove", request.pending_file), "the daemons have read the files"))
    return Plan((*steps, *done), action, compute, tuple(why), restart_id)


def state(node: Node, request: Request) -> dict[str, t.Any]:
    return {"files": {name: {"text": present.text, "mode": f"{present.mode:04o}", "owner": present.owner}
                      for name, present in node.files.items()},
            "services": {name: node.services.get(name, "unknown") for name in request.services}}


def predict(request: Request, node: Node) -> dict[str, t.Any]:
    found = state(node, request)
    for name in request.absent:
        found["files"].pop(name, None)
    for name, text in request.files.items():
        found["files"][name] = {"text": text, "mode": f"{request.mode(name):04o}", "owner": request.owner(name)}
    if request.state == "active":
        found["services"] = dict.fromkeys(request.services, "active")
    return found


def before(node: Node) -> dict[str, str]:
    """The texts that the daemons run with."""
    texts = {name: present.text for name, present in node.files.items()}
    if node.pending:
        texts = {name: text for name, text in texts.items() if name not in node.pending.new}
        texts.update(node.kept)
    return texts


def verify(request: Request, node: Node) -> list[Problem]:
    """What does not hold although every step reported success."""
    found = [Problem(request.path(name), why, "the file that was written", "read back after all steps")
             for name, why in _writes(request, node)]
    found += [Problem(request.path(name), "still there", "no file", "read back after all steps")
              for name in request.absent if name in node.files]
    return found
