# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of nvidia_driver from beginning to end: read, check, plan, write and load, read back."""
from __future__ import annotations

import contextlib
import dataclasses
import typing as t
from dataclasses import asdict, dataclass

from .._gpu.model import same_version
from .._gpu.tables import board, helper
from .._host.errors import AidcError, Problem
from .._host.lock import host_lock
from .._host.machine import Machine
from . import catalog, io, plan, reload
from .model import HOLDS_FILE, OPTIONS_FILE, PIN_FILE, File, Node, PackageSet, Request, Step, Use


@dataclass(frozen=True)
class Decision:
    """``use_known`` None: nobody was asked."""

    steps: tuple[Step, ...] = ()
    deferred: tuple[dict[str, str], ...] = ()
    use_known: bool | None = None


def _helpers(node: Node) -> dict[str, str]:
    return {one.name: one.version for one in node.packages if helper(one.name)}


def state(node: Node) -> dict[str, t.Any]:
    """What this module changes, and the versions that must agree."""
    return {
        "loaded": node.driver.loaded, "flavour": node.driver.flavour, "on_disk": node.on_disk().version,
        "userspace": node.driver.userspace, "helpers": _helpers(node),
        "held": sorted(one.name for one in node.packages if one.held), "options_file": node.options_file.text,
        "pin_file": node.pin_file.text, "stream": node.enabled_stream}


def _predicted(node: Node, steps: t.Sequence[Step]) -> Node:
    """The node after the steps, as far as they tell."""
    newest = node.options_file.changed_at
    for step in steps:
        if step.command == ("write", OPTIONS_FILE):
            newest += 1.0
            node = dataclasses.replace(node, options_file=File(step.text, newest))
        elif step.command == ("write", PIN_FILE):
            node = dataclasses.replace(node, pin_file=File(step.text))
        elif step.command == ("write", HOLDS_FILE):
            node = dataclasses.replace(node, holds_file=File(step.text))
        elif step.command[0] in ("update-initramfs", "dracut"):
            node = dataclasses.replace(node, images=dict.fromkeys(node.images, newest))
        elif step.command[:2] == ("apt-mark", "hold") or "versionlock" in step.command:
            held = "delete" not in step.command
            node = dataclasses.replace(node, packages=tuple(
                dataclasses.replace(one, held=held) if one.name in step.command else one for one in node.packages))
        elif step.command[:2] == ("modprobe", "nvidia"):
            there = node.on_disk()
            node = dataclasses.replace(node, in_force=None, driver=dataclasses.replace(
                node.driver, loaded=there.version, flavour=there.flavour, is_loaded=True))
        elif "enable" in step.command:
            node = dataclasses.replace(node, enabled_stream=step.command[-1].partition(":")[2])
    return node


def _summary(chosen: PackageSet | None, request: Request, node: Node, decision: Decision) -> dict[str, t.Any]:
    reasons = plan.reboot_reasons(request, node, decision.deferred)
    blockers = plan.reboot_blockers(chosen, request, node)
    return {
        "managed": request.manage,
        "os": asdict(node.os), "architecture": node.architecture,
        "kernels": {"running": node.kernel, "next": node.next_kernel, "installed": list(node.kernels)},
        "gpus": [one.pci for one in node.gpus],
        "package_set": chosen.id if chosen else None,
        "packages": {one.name: one.version for one in node.packages},
        "missing_packages": [one.name for one in plan.missing(chosen, request, node)] if chosen else [],
        "install": plan.installs(chosen, request, node) if chosen else [],
        "manager": chosen.manager if chosen else None,
        "modules": {kernel: asdict(node.on_disk(kernel)) for kernel in node.both_kernels},
        "dkms": [asdict(one) for one in node.builds],
        "secure_boot": node.secure_boot,
        "findings": [one.as_dict() for one in plan.findings(chosen, request, node)],
        "reboot_required": bool(reasons), "reboot_reasons": reasons,
        "reboot_allowed": not blockers, "reboot_blockers": [one.as_dict() for one in blockers],
    }


def _result(chosen: PackageSet | None, request: Request, before: Node, decision: Decision, after: Node,
            ) -> dict[str, t.Any]:
    old, new = state(before), state(after)
    return {
        "changed": bool(decision.steps), "before": old, "after": new,
        "commands": [list(step.command) for step in decision.steps],
        "steps": [step.as_dict() for step in decision.steps],
        "deferred": list(decision.deferred), "users_known": decision.use_known,
        "diff": {"before": old, "after": new}, **_summary(chosen, request, after, decision),
    }


def _board(request: Request, pci_ids: t.Iterable[str]) -> Request:
    """The class may say it; else the PCI id of the first known GPU does."""
    known = next((found for one in pci_ids if (found := board(one))), None)
    return dataclasses.replace(request, board=known.kind) if request.board is None and known else request


def _decide(machine: Machine, chosen: PackageSet, request: Request, node: Node) -> Decision:
    files = [*plan.stream_steps(chosen, request, node), *plan.release_steps(chosen, request, node),
             *plan.file_steps(chosen, request, node)]
    if plan.missing(chosen, request, node):
        return Decision(tuple(files))
    quiet = [*files, *plan.hold_steps(chosen, request, node)]
    loads = reload.steps(request, node) if request.reload else []
    if not loads and reload.reason(request, node) is None:
        return Decision(tuple(quiet))
    used = io.use(machine) if node.driver.is_loaded else Use()
    waits = reload.deferred(request, node, used)
    if not request.reload and not waits:
        waits = [{"holder": "reload", "why": "is false"}]
    return Decision((*quiet, *(() if waits else loads)), tuple(waits), not used.unseen)


def _failed(step: Step, said: str) -> Problem:
    hint = "look at dmesg for NVRM lines" if step.disruptive == "driver" else "run it by hand"
    return Problem(" ".join(step.command), said, "success", hint)


def _recover(machine: Machine, steps: t.Sequence[Step], done: int) -> None:
    """A reload that stopped half way: what it took away is asked back, as far as it goes."""
    if any(step.disruptive == "driver" for step in steps[:done + 1]):
        for step in steps:
            verb, first = step.command[:2]
            if (verb == "modprobe" and first != "-r") or (verb == "systemctl" and first == "start"):
                io.apply(machine, step)


def _apply(machine: Machine, steps: t.Sequence[Step]) -> None:
    done: list[tuple[str, ...]] = []
    for number, step in enumerate(steps):
        result = io.apply(machine, step)
        if result.state != "ok":
            _recover(machine, steps, number)
            raise AidcError([_failed(step, result.why() or result.said())], done)
        done.append(step.command)


def _verify(request: Request, before: Node, after: Node, steps: t.Sequence[Step]) -> list[Problem]:
    """The files and the module tell, not the commands, of which some exit 0 without effect."""
    found = list(after.problems)
    wanted = _predicted(before, steps)
    for name, path in (("options_file", OPTIONS_FILE), ("pin_file", PIN_FILE)):
        if state(after)[name] != state(wanted)[name]:
            found.append(Problem(path, "another text", "what was written", "does somebody else write it?"))
    lost = sorted(set(state(wanted)["held"]) - set(state(after)["held"]))
    if lost:
        found.append(Problem(f"packages {', '.join(lost)}", "not held", "held", "read back after the hold"))
    if any(step.command[:2] == ("modprobe", "nvidia") for step in steps):
        disk = after.on_disk().version or ""
        if not after.driver.loaded or not same_version(after.driver.loaded, disk):
            found.append(Problem("module nvidia", f"{after.driver.loaded or 'none'} loaded", disk,
                                 "read back after the reload; look at dmesg"))
        elif after.driven is not None and after.driven < len(after.gpus):
            found.append(Problem("GPUs of the driver", str(after.driven), f"{len(after.gpus)}, as on the PCI bus",
                                 "look at dmesg for NVRM lines and Xids"))
    return found


def _none() -> dict[str, t.Any]:
    """A node without a GPU: nothing is asked, and nothing is wrong."""
    node = Node()
    return {**_result(None, Request(manage=False), node, Decision(), node), "reboot_allowed": True}


def configure(machine: Machine, request: Request, check_mode: bool) -> dict[str, t.Any]:
    """Raises AidcError for whatever stands in the way."""
    wrong = plan.values(request) if request.manage else []
    if wrong:
        raise AidcError(wrong)
    pci_ids = io.gpu_ids(machine)
    if not pci_ids:
        return _none()
    request = dataclasses.replace(_board(request, pci_ids), manage=request.manage and not io.is_dgx(machine))
    with host_lock(machine, "nvidia_driver") if request.manage and not check_mode else contextlib.nullcontext():
        node = io.gather(machine, request)
        if not request.manage:
            return _result(None, request, node, Decision(), node)
        chosen = catalog.choose(request, node)
        problems = plan.check(chosen, request, node, check_mode)
        if problems or chosen is None:
            raise AidcError(problems)
        decision = _decide(machine, chosen, request, node)
        if not decision.steps:
            return _result(chosen, request, node, decision, node)
        if check_mode:
            return _result(chosen, request, node, decision, _predicted(node, decision.steps))
        _apply(machine, decision.steps)
        after = io.gather(machine, request)
        problems = _verify(request, node, after, decision.steps)
        if problems:
            raise AidcError(problems, [step.command for step in decision.steps])
        return _result(chosen, request, node, decision, after)
