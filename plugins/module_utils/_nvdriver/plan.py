# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What is missing, what stands in the way, which files and holds are to change, and what a reboot needs. Pure."""
from __future__ import annotations

import json
import typing as t

from .._gpu import judge, judge_driver
from .._gpu.judge import Node as Judged
from .._gpu.model import Package, Wanted, same_version
from .._gpu.tables import helper
from .._host.errors import Problem
from .._stack.model import Build
from . import catalog, options, reload
from .model import (
    BROKEN,
    HEADER,
    HOLDS_FILE,
    OPTIONS_FILE,
    PIN_FILE,
    Node,
    PackageSet,
    Request,
    Step,
)

_MODULE = "nvidia"


def values(request: Request) -> list[Problem]:
    """What can be told without the host."""
    found = options.wrong(request.module_options)
    parts = request.version.split(".")
    if not (2 <= len(parts) <= 3 and all(part.isdigit() for part in parts)):
        found.append(Problem("version", repr(request.version), "a full version such as 580.159.04",
                             "a branch moves; releases.json beside NVIDIA's driver documentation names all versions"))
    known = {row.id for row in request.known_bad}
    found += [Problem("allow_known_bad", one, f"an id of the data: {', '.join(sorted(known))}")
              for one in request.allow_known_bad if one not in known]
    return found


# -- packages -------------------------------------------------------------------------------------------------------


def _is_there(name: catalog.Name, request: Request, node: Node) -> bool:
    one = node.package(name.name)
    return one is not None and one.state not in BROKEN and (
        not name.pinned or catalog.is_version(one.version, request.version))


def missing(chosen: PackageSet, request: Request, node: Node) -> list[catalog.Name]:
    return [name for name in catalog.names(chosen, request, node) if not _is_there(name, request, node)]


def _join(chosen: PackageSet) -> str:
    return "=" if chosen.manager == "apt" else "-"


def installs(chosen: PackageSet, request: Request, node: Node) -> list[str]:
    """``missing`` as the package manager takes it. Without a known repository (check mode) the version is a pattern."""
    found = []
    for name in missing(chosen, request, node):
        exact = catalog.resolve(name.name, node, request.version)
        ending = "*" if chosen.manager == "dnf" else "-*"
        version = exact or f"{request.version}{ending}"
        found.append(f"{name.name}{_join(chosen)}{version}" if name.pinned else name.name)
    return found


def unresolved(chosen: PackageSet, request: Request, node: Node) -> list[Problem]:
    """Pinned names that no repository has in the wanted version."""
    found = []
    for name in missing(chosen, request, node):
        have = node.available.get(name.name, ())
        if not name.pinned or catalog.resolve(name.name, node, request.version):
            continue
        moved = [one for one in have if catalog.is_transitional(name.name, one)]
        hint = "a transitional package: its branch was emptied, and it pulls the newer one" if moved else (
            f"is the repository {request.repository} of the node complete? aidc_sources names it")
        found.append(Problem(f"package {name.name}", ", ".join(have[:5]) or "in no repository", request.version, hint))
    return found


def is_running(request: Request, node: Node) -> bool:
    """Whether the node has that driver already, loaded or on its disk."""
    return any(version is not None and same_version(version, request.version)
               for version in (node.driver.loaded, node.on_disk().version))


def _known_bad(request: Request, node: Node, refused: bool) -> list[Problem]:
    """A refusal is for nodes that would get it: one that runs it is told only, and goes on."""
    return [catalog.as_problem(row, request) for row in catalog.bad(request, node) if refused == (
        row.action == "refuse" and row.id not in request.allow_known_bad and not is_running(request, node))]


def _strange_holds(chosen: PackageSet, request: Request, node: Node) -> list[Problem]:
    """Held in another version, and not by us: an operator's word, or an older run's whose record was lost."""
    if request.replace_holds:
        return []
    names = {name.name for name in missing(chosen, request, node)}
    return [Problem(f"package {one.name}", f"{one.version}, held", f"{request.version}, or held by this module",
                    "release it, or set replace_holds") for one in node.packages
            if one.held and one.name not in node.our_holds and (one.name in names or (
                catalog.has_driver_version(one) and not catalog.is_version(one.version, request.version)))]


def _broken(node: Node) -> list[Problem]:
    return [Problem(f"package {one.name}", f"{one.state}, {one.version}", "installed",
                    "the package manager was interrupted, or a script of the package failed: dpkg --configure -a tells "
                    "why") for one in node.packages if one.state in BROKEN]


def _secure_boot(chosen: PackageSet | None, node: Node) -> list[Problem]:
    """Precompiled modules are signed by the distribution [driver-slurm-k8s.md 1.6]."""
    if not node.secure_boot or node.key_enrolled or (chosen and chosen.precompiled):
        return []
    return [Problem("Secure Boot", "enabled, and no enrolled key of DKMS", "a key that the firmware knows",
                    "the kernel refuses modules that DKMS built; enrol its key with mokutil --import at the console, "
                    "take precompiled modules (repository distribution), or turn Secure Boot off")]


def check(chosen: PackageSet | None, request: Request, node: Node, check_mode: bool) -> list[Problem]:
    """What forbids to go on."""
    found = [*node.problems]
    if not request.manage or found:
        return found
    if chosen is None:
        return [catalog.refusal(request, node)]
    if request.board in ("nvl", "nvswitch") and not chosen.pinned[request.board]:
        what = "IMEX" if request.board == "nvl" else "a fabric manager"
        found.append(Problem(f"package set {chosen.id}", f"no package of {what}", f"one, for the board {request.board}",
                             "choose the repository cuda"))
    found += [*_broken(node), *_known_bad(request, node, True)]
    if missing(chosen, request, node):
        found += [*_foreign(chosen, request, node), *_strange_holds(chosen, request, node),
                  *_secure_boot(chosen, node)]
        # Before the repositories or the stream are there, only the packages' names are known.
        if not (check_mode and not node.available) and not stream_steps(chosen, request, node):
            found += unresolved(chosen, request, node)
    elif not found and not any(node.on_disk(kernel).version for kernel in node.both_kernels):
        found.append(_no_module(node, node.kernel, request.version))
    return found


def _foreign(chosen: PackageSet, request: Request, node: Node) -> list[Problem]:
    return [Problem(f"package {one.name}", f"{one.version}, of another repository than {chosen.repository}",
                    "one source of the driver on a node", "remove it first, or choose its repository")
            for one in catalog.foreign(chosen, request, node)]


# -- what a reboot needs --------------------------------------------------------------------------------------------


def _builds(node: Node, kernel: str) -> list[Build]:
    return [one for one in node.builds if one.name == _MODULE and one.kernel in (kernel, None)]


def _no_module(node: Node, kernel: str, wanted: str) -> Problem:
    said = "; ".join(f"{one.name}/{one.version} {one.state}" for one in _builds(node, kernel))
    return Problem(f"{_MODULE} of kernel {kernel}", node.on_disk(kernel).version or "none", wanted,
                   f"dkms status says: {said}" if said else
                   "DKMS has no build for it, and no package of modules is for it; are its headers installed?")


def reboot_blockers(chosen: PackageSet | None, request: Request, node: Node) -> list[Problem]:
    """The next boot must come up with the driver [driver-slurm-k8s.md 1.2]."""
    if not node.gpus:
        return []
    found, following = [], node.next_kernel
    there = node.on_disk(following).version
    wanted = request.version if request.manage else (node.on_disk().version or node.driver.loaded or "a driver")
    if there is None or (request.manage and not same_version(there, wanted)):
        found.append(_no_module(node, following, wanted))
    found += [Problem(f"dkms {one.name}/{one.version}", f"{one.state} {one.note}".strip(),
                      f"installed for kernel {following}", "dkms autoinstall tells why not")
              for one in _builds(node, following) if one.kernel and same_version(one.version, wanted)
              and (one.state != "installed" or one.note)]
    found += _secure_boot(chosen, node)
    if request.manage:
        found += [Problem(f"initramfs of kernel {kernel}", "older than " + OPTIONS_FILE, "newer",
                          "it has the old options, and perhaps nouveau") for kernel in _old_images(node)]
    return found


def reboot_reasons(request: Request, node: Node, waits: t.Sequence[t.Mapping[str, str]]) -> list[str]:
    if not node.gpus:
        return []
    found = ["nouveau is loaded, and drives the GPUs until a boot without it"] if node.driver.nouveau else []
    why = reload.reason(request, node)
    following = node.on_disk(node.next_kernel).version
    if node.on_disk().version is None and following:
        found.append(f"kernel {node.kernel} has no module of the driver, {node.next_kernel} has {following}")
    if why is not None and not node.driver.nouveau:
        who = ", ".join(f"{one['holder']} {one['why']}" for one in waits)
        found.append(f"{why}{f'; not reloaded: {who}' if who else ''}")
    return found


# -- steps ----------------------------------------------------------------------------------------------------------


def _old_images(node: Node) -> list[str]:
    """An initramfs that was built before our file was written lacks it, also after a run that was killed."""
    if node.options_file.text is None:
        return []
    return [kernel for kernel, built in node.images.items() if built < node.options_file.changed_at]


def _rebuild(node: Node) -> tuple[str, ...]:
    debian = ("update-initramfs", "-u", "-k", "all")
    return debian if node.os.family == "Debian" else ("dracut", "-f", "--regenerate-all")


def file_steps(chosen: PackageSet, request: Request, node: Node) -> list[Step]:
    found = []
    if chosen.manager == "apt":
        pin = options.pin_text(request)
        if node.pin_file.text != pin:
            found.append(Step(("write", PIN_FILE), f"apt takes no other version than {request.version}", text=pin))
    text = options.options_text(request)
    writes = node.options_file.text != text
    if writes:
        found.append(Step(("write", OPTIONS_FILE), "options of the module, and no nouveau", text=text))
    old = list(node.images) if writes else _old_images(node)
    if old:
        found.append(Step(_rebuild(node), f"the initramfs of {', '.join(old)} is older than {OPTIONS_FILE}"))
    return found


def to_hold(chosen: PackageSet, request: Request, node: Node) -> list[str]:
    """The set, what came along in its version, and the kernel where its modules are precompiled."""
    names = {name.name for name in catalog.names(chosen, request, node) if name.pinned}
    names |= {one.name for one in node.packages if _MODULE in one.name
              and catalog.is_version(one.version, request.version)}
    names |= {one for one in (*catalog.held_with(chosen, node), *(
        name.name for name in catalog.names(chosen, request, node) if not name.pinned and "nvidia" in name.name))
        if node.package(one)}
    return sorted(names)


def holds_text(names: t.Iterable[str]) -> str:
    return json.dumps({"by": HEADER.strip("# \n"), "held": sorted(names)}, indent=1) + "\n"


def hold_steps(chosen: PackageSet, request: Request, node: Node) -> list[Step]:
    """Also those that an upgrade brought: apt takes a hold along with a package, not with a name."""
    if not request.hold or missing(chosen, request, node):
        return []
    wanted = to_hold(chosen, request, node)
    lacking = [name for name in wanted if not (node.package(name) or Package(name, "")).held]
    found = []
    text = holds_text({*(name for name in node.our_holds if name in wanted), *lacking})
    # First our record: a hold without it would be somebody else's to the next run.
    if (lacking or node.our_holds) and node.holds_file.text != text:
        found.append(Step(("write", HOLDS_FILE), "which packages this module holds", text=text))
    if lacking:
        command = ("apt-mark", "hold") if chosen.manager == "apt" else ("dnf", "-q", "-y", "versionlock", "add")
        found.append(Step((*command, *lacking), "an unattended upgrade must not move a part of the driver"))
    return found


def release_steps(chosen: PackageSet, request: Request, node: Node) -> list[Step]:
    """A lock of dnf hides every other version; apt is told to go over a hold when it installs."""
    if chosen.manager != "dnf" or not missing(chosen, request, node):
        return []
    locked = sorted(one.name for one in node.packages if one.held and (one.name in node.our_holds
                                                                       or request.replace_holds))
    if not locked:
        return []
    return [Step(("dnf", "-q", "-y", "versionlock", "delete", *locked), f"{request.version} is to be installed")]


def stream_steps(chosen: PackageSet, request: Request, node: Node) -> list[Step]:
    """dnf shows packages of a module's enabled stream alone."""
    stream = chosen.stream.get(request.flavour, "").format(branch=request.branch)
    module, _colon, name = stream.partition(":")
    if not stream or node.enabled_stream == name:
        return []
    if node.enabled_stream is None:
        return [Step(("dnf", "-q", "-y", "module", "enable", stream), "no stream of the driver is enabled")]
    why = f"the stream {node.enabled_stream} is enabled"
    return [Step(("dnf", "-q", "-y", "module", "reset", module), why),
            Step(("dnf", "-q", "-y", "module", "enable", stream), why)]


# -- findings -------------------------------------------------------------------------------------------------------


def _judged(request: Request, node: Node) -> Judged:
    return Judged(pcis=node.gpus, driver=node.driver, settings=node.settings, in_force=node.in_force,
                  units=node.units, kinds={one.pci: request.board for one in node.gpus})


def _set_findings(chosen: PackageSet | None, request: Request, node: Node) -> list[Problem]:
    found = [Problem(f"package {one.name}", one.version, f"of branch {catalog.branch_in_name(one.name)}",
                     "a transitional package of an emptied branch; install the packages of the branch by their names")
             for one in node.packages if catalog.is_transitional(one.name, one.version)]
    for one in node.packages:
        tool = helper(one.name)
        if tool and tool.name == "nvidia-fabricmanager" and request.board in ("pcie", "nvl"):
            found.append(Problem(f"package {one.name}", one.version, "none on this board",
                                 "it has no NVSwitch of its own; the fabric manager ends with NV_WARN_NOTHING_TO_DO"))
    if chosen is None or not request.manage:
        return found
    wanted = {name.name for name in catalog.names(chosen, request, node)}
    return found + [Problem(f"package {one.name}", "not held", "held with the rest of the set",
                            "an unattended upgrade moves it alone")
                    for one in node.packages if not request.hold and one.name in wanted and not one.held]


def findings(chosen: PackageSet | None, request: Request, node: Node) -> list[Problem]:
    wanted = Wanted(flavour=request.flavour if request.manage else None,
                    driver_version=request.version if request.manage else None,
                    module_parameters=request.module_options if request.manage else {})
    judged = _judged(request, node)
    found = [*judge_driver.findings(judged, wanted), *judge.fabric_manager(judged),
             *_set_findings(chosen, request, node), *options.findings(request, node),
             *_known_bad(request, node, False), *reboot_blockers(chosen, request, node)]
    if node.newer_kernel:
        found.append(Problem("kernel", f"{node.kernel} running", f"{node.newer_kernel}, the newest one installed",
                             "the next boot takes it, if the boot loader was not told otherwise"))
    return list(dict.fromkeys(found))
