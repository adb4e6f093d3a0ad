# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""From what a call wants and what is there: what is wrong with it, which steps it takes, what comes out. Pure."""
from __future__ import annotations

import typing as t

from .._host.errors import Problem
from .._net import plan as net_plan
from . import files
from .backend import Backend
from .model import DCBNL_GROUPS, DEFAULT_MAP, DSCPS, GROUPS, SHARED_GROUPS, Node, Port, Request, State, Step, Want, same

LLDPAD = "lldpad.service"
_WAYS_OUT = ("set dcbx_owner: firmware and leave these groups to the switch, or take_over: true to make the host the "
             "owner")


def supported(want: Want, port: Port) -> State:
    """The wanted groups that can be had on this port, in the order of writing."""
    return {group: want.state[group] for group in GROUPS if group in want.state and group not in port.unsupported}


def differing(want: Want, port: Port) -> list[str]:
    wanted = supported(want, port)
    found = [group for group in wanted if not same(group, port.state.get(group), wanted[group])]
    if "dscp_map" in wanted and "dscp_map" not in found and port.state.get("dscp_missing"):
        found.insert(found.index("trust") + 1 if "trust" in found else 0, "dscp_map")
    return sorted(found, key=GROUPS.index)


def state(request: Request, node: Node) -> list[dict[str, t.Any]]:
    """The managed groups of the ports as they are; null where a group cannot be had."""
    return [{"pci": want.pci, **{group: node.ports[want.pci].state.get(group) for group in GROUPS
                                 if group in want.state}} for want in request.wants]


def predict(request: Request, node: Node) -> list[dict[str, t.Any]]:
    """``state`` as it must be after the plan ran. A value that is as good as the wanted one stays."""
    after = state(request, node)
    for want, entry in zip(request.wants, after):
        port = node.ports[want.pci]
        entry.update({group: want.state[group] for group in differing(want, port)})
    return after


def check(request: Request, node: Node, backend: Backend) -> list[Problem]:
    """Everything that is wrong with the request, before anything is written."""
    found = list(node.problems)
    for want in request.wants:
        port = node.ports.get(want.pci)
        if port is not None:
            found += _check_required(want, port) + _check_buffer(want, port)
            found += _check_owner(request, want, port, backend)
    if node.lldpad and not request.take_over and any(_negotiated(want) for want in request.wants):
        found.append(Problem(LLDPAD, "it runs", "no DCBX agent beside this module",
                             "it overwrites PFC, ETS and the DSCP map of every port; stop and disable it (lldpd does "
                             "no DCBX), or take_over: true does so"))
    return list(dict.fromkeys(found + _check_shared(request, node)))


def _negotiated(want: Want) -> bool:
    return any(group in want.state for group in DCBNL_GROUPS)


def _check_required(want: Want, port: Port) -> list[Problem]:
    return [Problem(f"{group} of {want.pci} ({port.netdev})", "unsupported", "a group that can be set",
                    port.unsupported[group]) for group in GROUPS
            if group in want.required and group in port.unsupported]


def _check_owner(request: Request, want: Want, port: Port, backend: Backend) -> list[Problem]:
    name = f"DCBX of {want.pci} ({port.netdev})"
    have, wanted = port.state.get("dcbx"), want.state.get("dcbx")
    others = [group for group in want.state if group in DCBNL_GROUPS and group != "dcbx"]
    if have == "firmware" and wanted != "firmware" and others and not (request.take_over and wanted == "host"):
        return [Problem(name, "owned by the firmware, which overrules the host", "owned by the host", _WAYS_OUT)]
    if wanted is not None and have != wanted:
        reason = backend.cannot("dcbx", wanted)
        if reason:
            return [Problem(name, f"owned by the {have}", f"owned by the {wanted}", reason)]
    return []


def _check_buffer(want: Want, port: Port) -> list[Problem]:
    """The driver answers EINVAL; better said before anything is written."""
    total, sizes = port.state.get("buffer_total"), (want.state.get("buffer") or {}).get("buffer_size", ())
    if total is None or sum(sizes) <= total:
        return []
    name = f"buffer of {want.pci} ({port.netdev})"
    return [Problem(name, f"{sum(sizes)} bytes together", f"at most {total}, the port's")]


def _check_shared(request: Request, node: Node) -> list[Problem]:
    """Ports of one RoCE LAG have one RDMA device, and so one value."""
    found: list[Problem] = []
    seen: dict[tuple[str, str], Want] = {}
    for want in request.wants:
        port = node.ports.get(want.pci)
        for group in SHARED_GROUPS:
            if port is None or port.rdma_device is None or group not in want.state:
                continue
            first = seen.setdefault((port.rdma_device, group), want)
            if first.state[group] != want.state[group]:
                found.append(Problem(f"{group} of {port.rdma_device}",
                                     f"{first.state[group]} for {first.pci}, {want.state[group]} for {want.pci}",
                                     "one value", f"both are ports of {port.bond or 'one device'}"))
    return found


def _why(group: str, port: Port) -> str:
    have = port.state.get(group)
    if group == "dscp_map":
        missing = len(port.state.get("dscp_missing", ()))
        return f"{missing} DSCPs have no entry" if missing else "entries of the DSCP map differ"
    return f"{group} is {'unknown' if have is None else have}"


def _dcbnl_steps(want: Want, port: Port, groups: list[str], backend: Backend) -> list[Step]:
    """Each call of the tool sees what the calls before it leave behind."""
    steps: list[Step] = []
    have, wanted = dict(port.state), supported(want, port)
    done: set[str] = set()
    for group in groups:
        if group in done:
            continue
        if group == "dscp_map" and "trust" in done and same("dscp_map", have["dscp_map"], wanted["dscp_map"]):
            continue
        for command in backend.commands(port.netdev, group, have, wanted):
            # A PFC write that changes the bitmap toggles the link [mlx5 en_dcbnl.c, mlx5e_dcbnl_ieee_setpfc]; wait,
            # so that the two ports of a bond are never both down.
            wait = port.netdev if group == "pfc" and port.carrier else None
            steps.append(Step(command.argv, command.groups, _why(group, port), want.pci, command.disruptive, wait))
            done.update(command.groups)
        have = after_command(group, have, wanted)
    return steps


def after_command(group: str, have: State, wanted: State) -> State:
    """What a call leaves: turning trust to dscp fills the map with the driver's own."""
    have = {**have, group: wanted[group]}
    if group == "trust":
        have.pop("dscp_missing", None)
        have["dscp_map"] = list(DEFAULT_MAP) if wanted["trust"] == "dscp" else [0] * DSCPS
    return have


def plan(request: Request, node: Node, backend: Backend) -> list[Step]:
    """Smallest list of steps, port by port, so that only one link toggles at a time."""
    steps: list[Step] = []
    if node.lldpad and request.take_over and any(_negotiated(want) for want in request.wants):
        steps.append(Step(("systemctl", "disable", "--now", LLDPAD), ("dcbx",), "lldpad would overwrite the ports"))
    shared: set[tuple[str | None, str]] = set()
    for want in request.wants:
        port = node.ports[want.pci]
        groups = differing(want, port)
        # A trust of pcp has no map; the entries come with the trust.
        steps += _dcbnl_steps(want, port, [group for group in groups if group in DCBNL_GROUPS], backend)
        for group in (group for group in groups if group not in DCBNL_GROUPS):
            if group in SHARED_GROUPS and (port.rdma_device, group) in shared:
                continue
            shared.add((port.rdma_device, group))
            steps += [Step(("write", path, value), (group,), _why(group, port), want.pci)
                      for path, value in files.writes(port, group, want.state)]
    return steps


def verify(request: Request, node: Node) -> list[Problem]:
    """What does not hold although every step reported success."""
    found = list(node.problems)
    for want in request.wants:
        port = node.ports.get(want.pci)
        if port is None:
            continue
        for group in differing(want, port):
            found.append(Problem(f"{group} of {want.pci} ({port.netdev})", str(port.state.get(group)),
                                 str(want.state[group]), "the tools reported success; read back after all steps"))
    if node.lldpad and any(_negotiated(want) for want in request.wants):
        found.append(Problem(LLDPAD, "it still runs", "stopped"))
    return found


def check_uses(steps: t.Sequence[Step], node: Node, uses: t.Mapping[str, str], allow_management: bool = False,
               ) -> list[Problem]:
    """A step that stops a link, on a port that carries more than RDMA. Being a member of a bond is no such use."""
    found = []
    for pci in dict.fromkeys(step.pci for step in steps if step.disruptive == "link"):
        port = node.ports[str(pci)]
        reasons = [reason for reason in net_plan.refusals(uses.get(port.netdev), allow_management)
                   if not reason.startswith("is a member of the bond")]
        if reasons:
            found.append(Problem(f"{pci} ({port.netdev})", f"a port that {'; '.join(reasons)}",
                                 "a port whose link may stop for some seconds",
                                 net_plan.hint(reasons)))
    return found


def unsupported(request: Request, node: Node) -> list[dict[str, str]]:
    return [{"pci": want.pci, "group": group, "reason": node.ports[want.pci].unsupported[group]}
            for want in request.wants for group in GROUPS
            if group in want.state and group in node.ports[want.pci].unsupported]


def findings(request: Request, node: Node) -> list[dict[str, str]]:
    """What is not ours to change but spoils what we set."""
    problems = [Problem(f"global pause of {want.pci} ({port.netdev})", f"{port.global_pause} on", "off where PFC is on",
                        "NVIDIA documents both as exclusive; mlx5_port turns it off")
                for want in request.wants if (port := node.ports[want.pci]).global_pause and want.lossless]
    return [problem.as_dict() for problem in problems]
