# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""From what is wanted and what is there: the steps, the state before and after, what does not hold. Pure."""
from __future__ import annotations

import typing as t

from .._host.errors import Problem
from . import detect, sysctl
from .model import PENDING_FILE, File, Node, OwnerName, Request, Stanza, Step, Want, plain
from .owner import Owner, saves

# The kernel's own rules: local, main, default.
_KERNEL_RULES = {0, 32766, 32767}


def owner_of(request: Request, node: Node, want: Want) -> Owner:
    """The request has been checked, so there is one."""
    claim = detect.choose(request, node, node.netdev(want.pci))
    if claim.owner is None:
        raise ValueError(f"rail {want.rail} has no owner")
    return detect.make(claim.owner, node)


def _about(want: Want, texts: t.Iterable[str]) -> list[str]:
    """Rules or routes that are about this rail."""
    return [text for text in texts if f" from {want.ip} " in text
            or (want.gateway and text.endswith(f" table {want.table}"))]


def _running_addresses(want: Want, node: Node) -> list[str]:
    return [address.text for address in node.link(want.pci).addresses if not address.dynamic]


def _running_routes(want: Want, node: Node) -> list[str]:
    return _about(want, [text for device, text in node.routes if device == node.netdev(want.pci)])


def _running_sysctls(request: Request, want: Want, node: Node) -> dict[str, t.Any]:
    port = node.ports[want.pci]
    return {key: sysctl.effective(port.sysctls, port.sysctls_all).get(key) for key in request.sysctls_of(want)}


def _saved_sysctls(request: Request, want: Want, node: Node) -> dict[str, t.Any]:
    saved = sysctl.read(node.text(sysctl.PATH) or "").get(node.netdev(want.pci), {})
    return {key: saved.get(key) for key in request.sysctls_of(want)}


def _saved(want: Want, stanza: Stanza) -> dict[str, t.Any]:
    data = plain(stanza)
    data["addresses"] = sorted(data["addresses"])
    for key in ("rules", "routes"):
        data[key] = sorted(_about(want, data[key]))
    return data


def state(request: Request, node: Node) -> list[dict[str, t.Any]]:
    """Each rail as it runs and as it is saved."""
    found = []
    for want in request.rails:
        owner, link = owner_of(request, node, want), node.link(want.pci)
        running = {"addresses": sorted(_running_addresses(want, node)), "mtu_bytes": link.mtu_bytes, "up": link.up,
                   "rules": sorted(_about(want, node.rules)), "routes": sorted(_running_routes(want, node)),
                   **_running_sysctls(request, want, node)}
        found.append({
            "rail": want.rail, "pci": want.pci, "netdev": node.netdev(want.pci), "owner": owner.name,
            "running": running,
            "saved": {**_saved(want, owner.saved(want)), **_saved_sysctls(request, want, node)},
        })
    return found


def predict(request: Request, node: Node) -> list[dict[str, t.Any]]:
    """``state`` as it must be after the plan ran."""
    after = state(request, node)
    for want, entry in zip(request.rails, after):
        owner, sysctls = owner_of(request, node, want), request.sysctls_of(want)
        left = set(entry["running"]["addresses"]) - set(_replaced(owner, want))
        routing = {"rules": sorted(want.rules), "routes": sorted(want.routes)}
        entry["running"] = {"addresses": sorted({want.address, *left}), "mtu_bytes": want.mtu_bytes, "up": True,
                            **routing, **sysctls}
        entry["saved"] = {"addresses": sorted({want.address, *owner.kept(want)}), "mtu_bytes": want.mtu_bytes,
                          "ignore_carrier": True, **routing, **sysctls}
    return after


def _replaced(owner: Owner, want: Want) -> list[str]:
    """Addresses that our own file gave the port and does not give it any more."""
    ours, kept = owner.ours(want), owner.kept(want)
    return [item for item in (ours.addresses if ours else ()) if item != want.address and item not in kept]


def foreign(request: Request, node: Node, want: Want) -> list[str]:
    """Addresses on the running port that no file is going to give it."""
    owner = owner_of(request, node, want)
    known = {want.address, *owner.kept(want), *_replaced(owner, want)}
    return [item for item in _running_addresses(want, node) if item not in known]


def drift(request: Request, node: Node, want: Want) -> list[str]:
    """Why the running port must be configured again by its owner."""
    owner, link = owner_of(request, node, want), node.link(want.pci)
    addresses = _running_addresses(want, node)
    routes = _running_routes(want, node)
    found = [f"{text} is missing" for text in (want.address,) if text not in addresses]
    found += [f"{text} is no longer wanted" for text in _replaced(owner, want) if text in addresses]
    found += [f"MTU is {link.mtu_bytes}"] if link.mtu_bytes != want.mtu_bytes else []
    found += [] if link.up else ["the link is down"]
    found += [f"rule is missing: {text}" for text in want.rules if text not in node.rules]
    found += [f"route is missing: {text}" for text in want.routes if text not in routes]
    taken = owner.takes_part(want)
    return [*found, taken] if taken else found


def _files(request: Request, node: Node) -> list[tuple[Owner, list[File]]]:
    """Our files of each owner. Most nodes have one owner."""
    by_owner: dict[OwnerName, list[Want]] = {}
    for want in request.rails:
        by_owner.setdefault(owner_of(request, node, want).name, []).append(want)
    return [(owner, owner.files(wants)) for name, wants in by_owner.items() for owner in [detect.make(name, node)]]


def _differs(node: Node, file: File) -> bool:
    present = node.files.get(file.path)
    return present is None or present.text != file.text or present.mode != file.mode


def _write(node: Node, file: File) -> Step:
    present = node.files.get(file.path)
    why = ("there is none" if present is None else "its text differs" if present.text != file.text
           else f"its mode is {present.mode:04o}")
    return Step(("write", file.path), why, netdevs=file.netdevs, text=file.text, mode=file.mode)


def _owner_steps(request: Request, node: Node) -> list[Step]:
    drifted = {node.netdev(want.pci): "; ".join(reasons)
               for want in request.rails if (reasons := drift(request, node, want))}
    writes: list[Step] = []
    told: list[Step] = []
    for owner, files in _files(request, node):
        changed = [file for file in files if _differs(node, file)]
        writes += [_write(node, file) for file in changed]
        touched = {netdev for file in changed for netdev in file.netdevs}
        own = [node.netdev(want.pci) for want in request.rails if owner_of(request, node, want).name == owner.name]
        if node.pending:
            # A run was killed: the owner may have read nothing of what it wrote.
            changed, touched = files, set(own)
        late = [netdev for netdev in own if netdev in drifted and netdev not in touched]
        told += owner.take_over(changed, [netdev for netdev in own if netdev in touched], late)
    if not writes and not told:
        return []
    marker = Step(("write", PENDING_FILE), "the owner has not read the new files")
    start = [] if node.pending or not writes else [marker]
    end = [Step(("remove", PENDING_FILE), "the owner has read the files")] if node.pending or writes else []
    return [*start, *writes, *told, *end]


def running_sysctl_steps(request: Request, node: Node) -> list[Step]:
    steps = []
    for want in request.rails:
        netdev, running = node.netdev(want.pci), _running_sysctls(request, want, node)
        for key, value in request.sysctls_of(want).items():
            if running[key] != value:
                steps.append(Step(("set", sysctl.proc_path(netdev, key), str(value)), f"it is {running[key]}",
                                  netdevs=(netdev,)))
    return steps


def _sysctl_steps(request: Request, node: Node) -> list[Step]:
    values = {node.netdev(want.pci): request.sysctls_of(want) for want in request.rails if request.sysctls_of(want)}
    steps = running_sysctl_steps(request, node)
    file = File(sysctl.PATH, sysctl.text(values), sysctl.FILE_MODE, tuple(values))
    return [*steps, _write(node, file)] if values and _differs(node, file) else steps


def plan(request: Request, node: Node) -> list[Step]:
    """Smallest list of steps. The sysctls come last: an owner may set some when it takes a port over."""
    return [*_owner_steps(request, node), *_sysctl_steps(request, node)]


def lost(request: Request, node: Node, steps: t.Sequence[Step]) -> list[Problem]:
    """Foreign addresses on ports that the owner will configure anew: it would remove them."""
    touched = {netdev for step in steps if step.disruptive != "none" for netdev in step.netdevs}
    return [Problem(f"{want.pci} ({node.netdev(want.pci)})", f"the address {address}, which no file of {name} has",
                    f"{want.address} alone", f"{name} would remove it; do so yourself, or save it in its files")
            for want in request.rails if node.netdev(want.pci) in touched
            for name in [owner_of(request, node, want).name] for address in foreign(request, node, want)]


def _proof(want: Want, node: Node) -> list[Problem]:
    """The route as the kernel takes it; a missing one is not seen otherwise, as Linux assumes the peer on-link [M]."""
    proof = node.proofs.get(want.pci)
    if want.gateway is None or proof is None:
        return []
    if (proof.gateway, proof.device) == (want.gateway, node.netdev(want.pci)):
        return []
    got = proof.error or f"via {proof.gateway or 'no gateway'} dev {proof.device}"
    return [Problem(f"route from {want.ip} to {want.peer}", got, f"via {want.gateway} dev {node.netdev(want.pci)}",
                    "look at ip rule and ip route show table all")]


def verify(request: Request, node: Node) -> list[Problem]:
    """What does not hold although every step reported success."""
    found = []
    for want in request.rails:
        name = f"{want.pci} ({node.netdev(want.pci)})"
        owner = owner_of(request, node, want)
        found += [Problem(name, reason, f"what {owner.name} was told", "read back after all steps; look at its log")
                  for reason in drift(request, node, want)]
        found += [Problem(f"saved {what} of {name}", got, wanted, f"another file of {owner.name} overrules ours")
                  for what, got, wanted in saves(owner.saved(want), want)]
        for key, value in request.sysctls_of(want).items():
            got = _running_sysctls(request, want, node)[key]
            if got != value:
                found.append(Problem(f"{key} of {name}", str(got), str(value), "read back after all steps"))
        found += _proof(want, node)
    if node.rule_priorities and not set(node.rule_priorities) >= _KERNEL_RULES:
        found.append(Problem("ip rule", f"priorities {list(node.rule_priorities)}", "the kernel's own 0, 32766, 32767",
                             "without them nothing is routed; a manager of the network has removed them"))
    return found


def details(request: Request, node: Node) -> list[dict[str, t.Any]]:
    """Each rail with what is worth knowing beside its values."""
    found = []
    for want in request.rails:
        link, proof = node.link(want.pci), node.proofs.get(want.pci)
        found.append({
            "rail": want.rail, "pci": want.pci, "netdev": node.netdev(want.pci), "address": want.address,
            "carrier": link.carrier, "foreign_addresses": foreign(request, node, want),
            "dynamic_addresses": [address.text for address in link.addresses if address.dynamic],
            "files": [file.path for _owner, files in _files(request, node) for file in files
                      if node.netdev(want.pci) in (file.netdevs or (node.netdev(want.pci),))],
            "route_to": want.peer if want.gateway else None,
            "route_gateway": proof.gateway if proof else None,
        })
    return found
