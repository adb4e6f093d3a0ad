# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What is missing, what is wrong, whether the driver must be reloaded and who is in the way. Pure."""
from __future__ import annotations

import dataclasses
import re
import typing as t

from .._host.errors import Problem
from .model import ANY, DRIVER, OPENIBD, WANTED, Build, Impact, Module, Node, Request, Step, plain

_PROFILE = re.compile(r"doca-[a-z0-9][a-z0-9.+-]*")
# Names that stand for another version tomorrow [host-setup.md 2.1].
_MOVING = ("latest", "")


def values(request: Request) -> list[Problem]:
    """What can be told without the host."""
    if request.flavour != "doca_ofed":
        return []
    found = []
    if not _PROFILE.fullmatch(request.doca_profile):
        found.append(Problem("doca_profile", repr(request.doca_profile), "a profile package such as doca-ofed"))
    version = (request.doca_version or "").strip()
    if version in _MOVING or version.startswith("latest") or any(mark in version for mark in "*= "):
        found.append(Problem("doca_version", repr(request.doca_version), f"the exact version of {request.doca_profile}",
                             "apt-cache madison or dnf list --showduplicates tells what the site's repository has"))
    return found


# -- packages -------------------------------------------------------------------------------------------------------


def names(request: Request, family: str) -> tuple[str, ...]:
    """The packages that must be there, the profile last."""
    if request.flavour == "unmanaged":
        return ()
    own = request.packages.get(family, request.packages.get(ANY, ()))
    return (*own, request.doca_profile) if request.flavour == "doca_ofed" else own


def _pinned(request: Request, node: Node) -> bool:
    """Whether the profile is there in the wanted version; rpm's release may be left out."""
    there, wanted = node.packages.get(request.doca_profile), request.doca_version or ""
    return there == wanted or (node.os.family == "RedHat" and (there or "").startswith(f"{wanted}-"))


def missing(request: Request, node: Node) -> list[str]:
    found = [name for name in names(request, node.os.family) if name not in node.packages]
    profile = request.doca_profile
    if request.flavour == "doca_ofed" and profile not in found and not _pinned(request, node):
        found.append(profile)
    return found


def installs(request: Request, node: Node) -> list[str]:
    """``missing`` as the package manager takes it: the profile with its version."""
    join = "-" if node.os.family == "RedHat" else "="
    return [f"{name}{join}{request.doca_version}" if request.flavour == "doca_ofed" and name == request.doca_profile
            else name for name in missing(request, node)]


# -- what stands in the way -----------------------------------------------------------------------------------------


def _family(request: Request, node: Node) -> list[Problem]:
    if request.flavour == "unmanaged" or node.os.family in request.packages or ANY in request.packages:
        return []
    return [Problem("distribution", node.os.id or "none known",
                    f"a distribution of the family {' or '.join(sorted(request.packages)) or 'that packages name'}",
                    "or name the packages; the role does with rdma_stack_packages")]


def _before_install(request: Request, node: Node) -> list[Problem]:
    found, newer = [], node.newer_kernel
    if newer and not request.doca_for_next_kernel:
        found.append(Problem("kernel", f"{node.kernel} running and {newer} installed", "the newest one running",
                             "reboot first, or set doca_for_next_kernel: modules are built for the kernels whose "
                             "headers are there"))
    if node.secure_boot and not node.key_enrolled:
        found.append(Problem("Secure Boot", "enabled, and no enrolled key of DKMS", "a key that the firmware knows",
                             "the kernel refuses modules that DKMS built; enrol its key with mokutil --import, or turn "
                             "Secure Boot off"))
    return found


def _builds(node: Node, kernel: str) -> list[Build]:
    return [build for build in node.builds if build.kernel in (kernel, None)]


def _why_not_built(node: Node, kernel: str) -> str:
    said = [f"{build.name}/{build.version} {build.state}" for build in _builds(node, kernel)]
    return f"dkms status says: {'; '.join(said)}" if said else "DKMS has no build for it; are its headers installed?"


def _kernels(node: Node) -> list[str]:
    return list(dict.fromkeys((node.kernel, node.next_kernel)))


def _modules(node: Node) -> list[Problem]:
    """The kernels that would run without the driver that is wanted."""
    return [Problem(f"{DRIVER} of kernel {kernel}", node.on_disk(kernel).text(), "that of DOCA-OFED",
                    _why_not_built(node, kernel))
            for kernel in _kernels(node) if node.on_disk(kernel).kind != "ofed"]


def check(request: Request, node: Node) -> list[Problem]:
    """What forbids to go on. A missing package or program does not: it is a result."""
    found = [*node.problems, *_family(request, node)]
    if found or request.flavour != "doca_ofed":
        return found
    return _before_install(request, node) if request.doca_profile in missing(request, node) else _modules(node)


# -- findings -------------------------------------------------------------------------------------------------------


def _stack_findings(request: Request, node: Node) -> list[Problem]:
    found, wanted, there = [], WANTED[request.flavour], node.on_disk()
    if node.package and node.loaded.kind == "inbox":
        hint = ("the driver was not restarted since, or an old initramfs loaded first" if there.kind == "ofed"
                else f"its modules were not built for this kernel: {_why_not_built(node, node.kernel)}")
        found.append(Problem(DRIVER, f"{node.loaded.text()} loaded", f"that of {node.package}, which is installed",
                             hint))
    if wanted == "inbox" and node.loaded.kind == "ofed":
        found.append(Problem(DRIVER, f"{node.loaded.text()} loaded", "the kernel's own, as the flavour says",
                             "remove DOCA-OFED and reboot, or choose the flavour doca_ofed or unmanaged"))
    return found


def _kernel_findings(node: Node) -> list[Problem]:
    newer, found = node.newer_kernel, []
    if not newer:
        return []
    found.append(Problem("kernel", f"{node.kernel} running", f"{newer}, the newest one installed",
                         "the next boot takes it, if the boot loader was not told otherwise"))
    if node.on_disk().kind != node.on_disk(newer).kind:
        found.append(Problem(f"{DRIVER} of kernel {newer}", node.on_disk(newer).text(), node.on_disk().text(),
                             f"the stack changes with the next boot; {_why_not_built(node, newer)}"))
    return found


def findings(request: Request, node: Node) -> list[Problem]:
    found = [*_stack_findings(request, node), *_kernel_findings(node)]
    wants_ofed = request.flavour == "doca_ofed" or node.on_disk().kind == "ofed"
    if node.secure_boot and wants_ofed:
        key = "an enrolled key of DKMS" if node.key_enrolled else "no enrolled key of DKMS"
        found.append(Problem("Secure Boot", f"enabled, {key}", "modules that the firmware's keys signed",
                             "a module without such a signature is not loaded"))
    found += [Problem(f"dkms {build.name}/{build.version}", f"{build.state} {build.note}".strip(),
                      f"installed for kernel {build.kernel or node.kernel}", "dkms autoinstall tells why not")
              for build in node.builds
              if build.kernel in (*_kernels(node), None) and (build.state != "installed" or build.note)]
    return found


# -- the driver -----------------------------------------------------------------------------------------------------


def restart_reason(node: Node) -> str | None:
    """Why the loaded driver is not the installed one; None if it is, or where there is no device for it."""
    there, loaded = node.on_disk(), node.loaded
    if not node.functions or there.kind is None:
        return None
    if loaded.kind != there.kind:
        return f"{loaded.text()} is loaded, {there.text()} is installed for kernel {node.kernel}"
    if loaded.srcversion and there.srcversion and loaded.srcversion != there.srcversion:
        return (f"srcversion {loaded.srcversion} ({loaded.version}) is loaded, {there.srcversion} ({there.version}) is "
                "installed")
    return None


def plan(request: Request, node: Node) -> list[Step]:
    """openibd is of DOCA-OFED: it loads that driver and no other."""
    reason = restart_reason(node)
    if not request.restart or reason is None or request.flavour != "doca_ofed" or node.on_disk().kind != "ofed":
        return []
    return [Step((OPENIBD, "restart"), reason)]


def _entry(holder: str, why: str) -> dict[str, str]:
    return {"holder": holder, "why": why}


def _hard(node: Node, impact: Impact) -> list[dict[str, str]]:
    """What no policy overrides: it would fail, or cut the node off."""
    found = [_entry(problem.object, f"what the ports carry is not known: {problem.got}") for problem in impact.problems]
    if not node.has_openibd:
        found.append(_entry(OPENIBD, "is not there"))
    for function in node.functions:
        found += [_entry(netdev, impact.uses[netdev]) for netdev in function.netdevs if netdev in impact.uses]
        if function.vfs:
            found.append(_entry(function.pci, f"has {function.vfs} virtual functions, with which openibd stops"))
    return found + [_entry(one.name, f"uses {' and '.join(one.uses)}, and openibd does not unload it")
                    for one in node.dependants if one.role != "stack"]


def deferred(request: Request, node: Node, impact: Impact) -> list[dict[str, str]]:
    """Why the driver is not restarted now."""
    if request.disruption_policy == "never":
        return [_entry("disruption_policy", "is never")]
    found = _hard(node, impact)
    if request.disruption_policy == "if_idle":
        # openibd takes every device away, so it does not matter which one is used.
        found += [_entry(holder.who, holder.does) for holder in impact.holders]
    return found


def predict(node: Node) -> Node:
    return dataclasses.replace(node, loaded=node.on_disk())


def _lost(before: Node, after: Node) -> list[Problem]:
    there = {function.pci: function for function in after.functions}
    bound = [function for function in before.functions if function.driver]
    found = []
    for old in bound:
        new = there.get(old.pci)
        gone = [kind for kind, had, has in (
            ("driver", True, new and new.driver), ("netdev", old.netdevs, new and new.netdevs),
            ("RDMA device", old.rdma_devices, new and new.rdma_devices)) if had and not has]
        if gone:
            found.append(Problem(old.pci, f"no {' and no '.join(gone)}", "all that it had before the restart",
                                 "look at dmesg; a reboot brings the driver back"))
    if not bound and not any(function.driver for function in after.functions):
        found.append(Problem(DRIVER, "no device bound to it", "all devices bound", "look at dmesg"))
    return found


def verify(before: Node, after: Node) -> list[Problem]:
    """Devices and the loaded module tell, not openibd, which says OK without any module [FaaSMem#1]."""
    wanted, found = before.on_disk(), _lost(before, after)
    if after.loaded.kind != wanted.kind or _differ(after.loaded, wanted):
        found.append(Problem(DRIVER, f"{after.loaded.text()} loaded", wanted.text(),
                             "read back after the restart; look at dmesg and at what openibd printed"))
    return found


def _differ(loaded: Module, wanted: Module) -> bool:
    return bool(loaded.srcversion and wanted.srcversion and loaded.srcversion != wanted.srcversion)


def state(node: Node) -> dict[str, t.Any]:
    """The loaded driver, for ``before`` and ``after``. The file of a loaded module is not known."""
    return {key: value for key, value in plain(node.loaded).items() if key != "filename"}


def summary(request: Request, node: Node) -> dict[str, t.Any]:
    """All that the read gave, as the module returns it."""
    reason = restart_reason(node)
    return {
        "os": dataclasses.asdict(node.os),
        "kernels": {"running": node.kernel, "next": node.next_kernel, "installed": list(node.kernels)},
        "packages": node.packages,
        "missing_packages": missing(request, node),
        "install": installs(request, node),
        "missing_programs": list(node.missing_programs),
        "stack": {
            "wanted": WANTED[request.flavour], "loaded": state(node), "installed": plain(node.on_disk()),
            "next_kernel": plain(node.on_disk(node.next_kernel)), "package": node.package,
            "dkms": [dataclasses.asdict(build) for build in node.builds],
        },
        "dependants": [one.as_dict() for one in node.dependants],
        "secure_boot": node.secure_boot,
        "findings": [problem.as_dict() for problem in findings(request, node)],
        "restart_required": reason is not None,
        "restart_reason": reason,
    }
