# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Which packages are the driver, and which versions of it are known to be bad: rows of data, one evaluator. Pure."""
from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from .._gpu import parse_driver
from .._gpu.model import Package, version_parts
from .._host.errors import AidcError, Problem
from .._stack.model import Os, kernel_order
from .model import ACTIONS, MANAGERS, KnownBad, Node, PackageSet, Request

ROLES = ("common", "open", "proprietary", "nvl", "nvswitch")
_CONDITIONS = ("architecture", "page_size_bytes", "branches", "below", "pci_ids", "flavour", "distributions",
               "kernel_from")
_BRANCH_IN_NAME = re.compile(r"(?:^|-)(\d{3})(?:-|$)")
# The flavour of a kernel is what its release ends in: generic, nvidia-64k, aws [driver-slurm-k8s.md 1.2].
_KERNEL_FLAVOUR = re.compile(r"^[\d.]+-\d+-(.+)$")


@dataclass(frozen=True)
class Name:
    """``pinned``: it has the driver's version; others have one of their own."""

    name: str
    pinned: bool = True


def _row(kind: str, data: t.Any, keys: t.Mapping[str, bool]) -> dict[str, t.Any]:
    """Refuses keys that nothing reads; ``keys`` says which ones must be there."""
    if not isinstance(data, dict):
        raise AidcError([Problem(kind, repr(data)[:60], "a row with keys")])
    where = f"{kind} {data.get('id', '')}".strip()
    strange = sorted(set(data) - set(keys))
    missing = sorted(key for key, needed in keys.items() if needed and not data.get(key))
    if strange or missing:
        got = f"unknown {', '.join(strange) or 'none'}; missing {', '.join(missing) or 'none'}"
        raise AidcError([Problem(where, got, f"the keys {', '.join(keys)}")])
    return data


def package_set(data: t.Any) -> PackageSet:
    """A row as the data file has it. Raises AidcError for one that is not understood."""
    row = _row("package set", data, {
        "id": True, "distributions": True, "releases": True, "architectures": True, "repository": True,
        "manager": True, "branch_from": True, "branch_below": False, "pinned": True, "unpinned": False,
        "by_kernel": False, "hold_with": False, "stream": False, "precompiled": False, "source": True})
    pinned = row["pinned"]
    if row["manager"] not in MANAGERS or set(pinned) - set(ROLES):
        raise AidcError([Problem(f"package set {row['id']}", f"{row['manager']}, {', '.join(pinned)}",
                                 f"a manager {' or '.join(MANAGERS)} and roles of {', '.join(ROLES)}")])
    below = row.get("branch_below")
    return PackageSet(
        row["id"], tuple(row["distributions"]), tuple(str(one) for one in row["releases"]),
        tuple(row["architectures"]), row["repository"], row["manager"], int(row["branch_from"]),
        int(below) if below else None, {role: tuple(pinned.get(role, ())) for role in ROLES},
        tuple(row.get("unpinned", ())), tuple(row.get("by_kernel", ())), tuple(row.get("hold_with", ())),
        dict(row.get("stream", {})), bool(row.get("precompiled", False)), row["source"])


def known_bad(data: t.Any) -> KnownBad:
    row = _row("known bad", data, {"id": True, "when": True, "action": True, "what": True, "hint": False,
                                   "source": True})
    strange = sorted(set(row["when"]) - set(_CONDITIONS))
    if strange or row["action"] not in ACTIONS:
        got = f"unknown conditions: {', '.join(strange) or 'none'}; action {row['action']}"
        raise AidcError([Problem(f"known bad {row['id']}", got,
                                 f"conditions of {', '.join(_CONDITIONS)}; {' or '.join(ACTIONS)}")])
    return KnownBad(row["id"], dict(row["when"]), row["action"], row["what"], row.get("hint", ""), row["source"])


# -- the set --------------------------------------------------------------------------------------------------------


def _is_release(version: str, releases: t.Collection[str]) -> bool:
    return any(version == one or version.startswith(f"{one}.") for one in releases)


def _fits(one: PackageSet, system: Os, architecture: str) -> bool:
    return (system.id in one.distributions and _is_release(system.version, one.releases)
            and architecture in one.architectures)


def _in_branch(one: PackageSet, branch: int) -> bool:
    return one.branch_from <= branch and (one.branch_below is None or branch < one.branch_below)


def choose(request: Request, node: Node) -> PackageSet | None:
    return next((one for one in request.sets if _fits(one, node.os, node.architecture)
                 and one.repository == request.repository and _in_branch(one, request.branch)), None)


def refusal(request: Request, node: Node) -> Problem:
    """Why there is no set."""
    here = f"{node.os.id or 'no distribution'} {node.os.version} on {node.architecture}"
    known = [one for one in request.sets if _fits(one, node.os, node.architecture)]
    if known:
        ranges = "; ".join(f"{one.repository}: {one.branch_from} to below {one.branch_below or 'any'}" for one in known)
        return Problem("driver branch", f"{request.branch} of the repository {request.repository} for {here}",
                       f"a branch that the package sets know ({ranges})", "another version, or another repository")
    have = ", ".join(sorted({f"{one.distributions[0]} {'/'.join(one.releases)} ({'/'.join(one.architectures)})"
                             for one in request.sets}))
    return Problem("distribution", here, have or "a package set", "install the driver yourself and let the role verify")


def kernel_flavour(release: str) -> str:
    match = _KERNEL_FLAVOUR.match(release)
    return match.group(1) if match else "generic"


def names(chosen: PackageSet, request: Request, node: Node) -> tuple[Name, ...]:
    """Fabric manager on boards with NVSwitches only, IMEX on NVL boards only [driver-slurm-k8s.md 0.3, 1.2]."""
    roles = ["common", request.flavour, *([request.board] if request.board in ("nvl", "nvswitch") else [])]
    pinned = [name.format(branch=request.branch) for role in roles for name in chosen.pinned[role]]
    others = [*(name.format(branch=request.branch, kernel=kernel) for name in chosen.unpinned
                for kernel in node.both_kernels),
              *(name.format(branch=request.branch, kernel_flavour=kernel_flavour(node.next_kernel),
                            open="-open" if request.flavour == "open" else "") for name in chosen.by_kernel)]
    return (*(Name(name) for name in dict.fromkeys(pinned)),
            *(Name(name, False) for name in dict.fromkeys(others)))


def held_with(chosen: PackageSet, node: Node) -> tuple[str, ...]:
    return tuple(name.format(kernel_flavour=kernel_flavour(node.next_kernel)) for name in chosen.hold_with)


def foreign(chosen: PackageSet, request: Request, node: Node) -> list[Package]:
    """Installed packages of the driver that only another set has: the two conflict [driver-slurm-k8s.md 1.2]."""
    def patterns(one: PackageSet) -> set[str]:
        return {name for role in ("common", "open", "proprietary") for name in one.pinned[role]}

    others = [one for one in request.sets if _fits(one, node.os, node.architecture)
              and one.repository != chosen.repository]
    ours = {name.replace("{branch}", "") for one in request.sets if one.repository == chosen.repository
            and _fits(one, node.os, node.architecture) for name in patterns(one)}
    strange = [re.compile(re.escape(name).replace(r"\{branch\}", r"\d+") + "$") for one in others
               for name in patterns(one) if name.replace("{branch}", "") not in ours]
    return [one for one in node.packages if any(pattern.match(one.name) for pattern in strange)]


# -- versions -------------------------------------------------------------------------------------------------------


def is_version(package: str, wanted: str) -> bool:
    """Whether a package of that version has the wanted driver; part by part, as 580.159.3 is not 580.159.30."""
    return version_parts(parse_driver.package_version(package)) == version_parts(wanted)


def resolve(name: str, node: Node, wanted: str) -> str | None:
    """The exact version that the repositories have of it; the first is what the package manager prefers."""
    return next((one for one in node.available.get(name, ()) if is_version(one, wanted)), None)


def has_driver_version(package: Package) -> bool:
    """Drivers count from hundreds; a container toolkit does not."""
    return "nvidia" in package.name and (version_parts(package.version) or (0,))[0] >= 300


def branch_in_name(name: str) -> int | None:
    match = _BRANCH_IN_NAME.search(name)
    return int(match.group(1)) if match else None


def is_transitional(name: str, version: str) -> bool:
    """A name of one branch with the version of another: emptied, it pulls the newer one [driver-slurm-k8s.md 0.1]."""
    branch, parts = branch_in_name(name), version_parts(parse_driver.package_version(version))
    return branch is not None and bool(parts) and parts[0] >= 100 and parts[0] != branch


# -- known bad ------------------------------------------------------------------------------------------------------


def _holds(key: str, value: t.Any, request: Request, node: Node) -> bool:
    """What is not known is no match: nothing is refused on a guess."""
    if key == "branches":
        return request.branch in value
    if key == "below":
        return version_parts(request.version) < version_parts(str(value))
    if key == "pci_ids":
        return bool({one.pci_id for one in node.gpus} & set(value))
    if key == "distributions":
        return node.os.id in value
    if key == "kernel_from":
        return bool(node.kernel) and kernel_order(node.next_kernel) >= kernel_order(str(value))
    got = {"architecture": node.architecture, "page_size_bytes": node.page_size_bytes, "flavour": request.flavour}
    return bool(got[key] == value)


def bad(request: Request, node: Node) -> list[KnownBad]:
    return [row for row in request.known_bad
            if all(_holds(key, value, request, node) for key, value in row.when.items())]


def as_problem(row: KnownBad, request: Request) -> Problem:
    hint = "; ".join(filter(None, (row.hint, f"source: {row.source}",
                                   f"allow_known_bad: [{row.id}] overrides" if row.action == "refuse" else "")))
    return Problem(f"driver {request.version}", f"known bad ({row.id}): {row.what}", "a version that is not", hint)
