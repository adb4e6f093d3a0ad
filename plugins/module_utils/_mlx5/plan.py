# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""From what a call wants and what is there: what is wrong with it, which steps it takes, what comes out. Pure."""
from __future__ import annotations

import typing as t

from .._host.errors import Problem
from .._net import plan as net_plan
from .._networkd import plan as networkd_plan
from .._networkd.model import IPV6_MIN_MTU_BYTES, PENDING_FILE, RELOAD
from . import mtu, tuning
from .model import MIN_MTU_BYTES, PCI_ADDRESS, Node, Port, Request, Step, Want, rdma_mtu_bytes
from .tuning import Have


def _have(want: Want, node: Node) -> Have:
    return node.settings.get(want.pci, Have())


def state(request: Request, node: Node) -> list[dict[str, t.Any]]:
    """The ports in the shape of the module's option, plus the saved value; of settings those that are asked for."""
    found = []
    for want in request.ports:
        port = node.port(want.pci) or Port(1)
        have = _have(want, node).values
        found.append({"pci": want.pci, "mtu_bytes": port.mtu_bytes, "saved_mtu_bytes": port.saved_mtu_bytes,
                      **{key: have.get(key) for key in want.settings}})
    return found


def predict(request: Request, node: Node) -> list[dict[str, t.Any]]:
    """``state`` as it must be after the plan ran."""
    after = state(request, node)
    for want, entry in zip(request.ports, after):
        if request.runtime:
            entry.update(want.settings)
        if request.runtime and want.mtu_bytes is not None:
            entry["mtu_bytes"] = want.mtu_bytes
        if request.persistent and want.mtu_bytes is not None:
            entry["saved_mtu_bytes"] = want.mtu_bytes
    return after


def must_save(want: Want, node: Node) -> bool:
    """Whether the files on disk say something else than the wanted value."""
    port = node.port(want.pci)
    return port is not None and want.mtu_bytes is not None and port.saved_mtu_bytes != want.mtu_bytes


def _check_addresses(request: Request, node: Node) -> list[Problem]:
    found, seen = [], set()
    present = ", ".join(device.pci for device in node.devices) or "no mlx5 device"
    for want in request.ports:
        if not PCI_ADDRESS.fullmatch(want.pci):
            found.append(Problem("ports", repr(want.pci), "a PCI address such as 0000:03:00.0"))
        elif want.pci in seen:
            found.append(Problem(want.pci, "listed twice", "each PCI address once"))
        elif node.port(want.pci) is None:
            found.append(Problem(want.pci, "no such mlx5 port", "an mlx5 port's PCI address", f"there is: {present}"))
        seen.add(want.pci)
    return found


def _check_port(want: Want, port: Port, allow_management: bool) -> list[Problem]:
    name = f"{want.pci} ({port.netdev})"
    if port.netdev is None or port.mtu_bytes is None:
        hint = "its netdev is missing, in another network namespace, or one of several"
        return [Problem(want.pci, "no netdev that can be told to be its own", "one netdev", hint)]
    found = []
    if port.link_layer != "Ethernet":
        found.append(Problem(name, f"link layer {port.link_layer}", "Ethernet",
                             "LINK_TYPE is a firmware parameter; on InfiniBand the subnet manager sets the MTU"))
    # A listed member of a bond is one of its rails; what else the bond carries still counts.
    uses = [use for use in net_plan.refusals(port.excluded, allow_management)
            if use != f"is a member of the bond {port.bond}"]
    if uses:
        found.append(Problem(name, f"a port that {'; '.join(uses)}", "a port used only as a rail",
                             net_plan.hint(uses)))
    return [*found, *_check_mtu(name, want, port)]


def _check_mtu(name: str, want: Want, port: Port) -> list[Problem]:
    found = [problem] if (problem := mtu.rdma_problem(want, port)) else []
    value, most = want.mtu_bytes, port.max_mtu_bytes
    if value is not None and value < MIN_MTU_BYTES:
        found.append(Problem(name, f"MTU {value}", f"at least {MIN_MTU_BYTES}", "below it RoCE does not work"))
    if value is not None and most is not None and value > most:
        found.append(Problem(name, f"MTU {value}", f"at most {most}, the device's maximum"))
    return found


def _check_runtime_tools(request: Request, node: Node) -> list[Problem]:
    found = list(node.use_problems)
    if request.verify_rdma_mtu:
        found += node.rdma_problems
        for want in request.ports:
            found += _check_rdma(want, node)
    return found


def _check_rdma(want: Want, node: Node) -> list[Problem]:
    """Whether the RDMA MTU of this port can be seen at all."""
    device, port = node.device(want.pci), mtu.rdma_port(node, want.pci)
    if device is None or port is None:
        return []
    seen = device.rdma_device or port is not node.port(want.pci)
    if seen and (port.rdma_mtu_bytes is not None or node.rdma_problems):
        return []
    got = f"no active_mtu of {device.rdma_device} in ibv_devinfo" if device.rdma_device else "no RDMA device"
    return [Problem(want.pci, got, "one RDMA device, to verify its MTU",
                    "load mlx5_ib and look at ibv_devinfo, or use verify_rdma_mtu: false")]


def _check_saving(want: Want, port: Port, node: Node) -> list[Problem]:
    netdev = str(port.mtu_netdev)
    if want.mtu_bytes is None:
        return []
    owner = networkd_plan.check_owner(node.networkd, netdev)
    if owner is not None:
        return [owner]
    if want.mtu_bytes < IPV6_MIN_MTU_BYTES:
        return [Problem(f"{want.pci} ({netdev})", f"MTU {want.mtu_bytes}", f"at least {IPV6_MIN_MTU_BYTES} to be saved",
                        "networkd raises a smaller value where IPv6 is on; use persistent: false")]
    saved = node.networkd.of(netdev)
    if saved is None or not must_save(want, node):
        return []
    problem = networkd_plan.check_dropin(saved, want.mtu_bytes, netdev)
    return [problem] if problem else []


def _check_sharing(request: Request, node: Node) -> list[Problem]:
    """A drop-in is for every link that its .network file matches: all of them must want the same value."""
    wanted = {str(port.mtu_netdev): want.mtu_bytes for want in request.ports if (port := node.port(want.pci))}
    found, seen = [], set()
    for want in request.ports:
        port = node.port(want.pci)
        saved = node.networkd.of(port.mtu_netdev) if port else None
        if saved is None or saved.network_file in seen or not must_save(want, node):
            continue
        seen.add(saved.network_file)
        others = [name for name in node.networkd.governed_by(saved.network_file) if wanted.get(name) != want.mtu_bytes]
        if others:
            texts = ", ".join(f"{name} (wants {wanted[name]})" if name in wanted else f"{name} (not listed)"
                              for name in others)
            found.append(Problem(saved.network_file, f"a file that also matches {texts}",
                                 f"only ports that want MTU {want.mtu_bytes}", "give each port its own .network file"))
    return found


def check(request: Request, node: Node) -> list[Problem]:
    """Everything that is wrong with the request, before anything is written."""
    found = _check_addresses(request, node)
    if found:
        # A device that could not be read is why an address is missing.
        return [*found, *node.device_problems]
    found = _check_runtime_tools(request, node)
    for want in request.ports:
        port = node.port(want.pci)
        if port is not None:
            found += _check_port(want, port, request.allow_management)
            found += tuning.check(f"{want.pci} ({port.netdev})", want.settings, _have(want, node))
    found += mtu.bond_problems(request, node)
    if request.persistent and not found:
        for want in request.ports:
            port = node.port(want.pci)
            if port is not None:
                found += _check_saving(want, port, node)
        found = found or _check_sharing(request, node)
    return list(dict.fromkeys(found))


def _runtime_steps(request: Request, node: Node) -> list[Step]:
    steps = mtu.steps(request, node)
    for want in request.ports:
        port = node.port(want.pci)
        if port is not None and port.netdev:
            steps += [Step(command, disruptive, why, want.pci) for command, disruptive, why
                      in tuning.plan(want.pci, port.netdev, want.settings, _have(want, node))]
    return steps


def _write_steps(request: Request, node: Node) -> list[Step]:
    steps: dict[str, Step] = {}
    for want in request.ports:
        port = node.port(want.pci)
        saved = node.networkd.of(port.mtu_netdev) if port else None
        if port is not None and saved is not None and want.mtu_bytes is not None and must_save(want, node):
            path = networkd_plan.dropin_path(saved.network_file)
            steps.setdefault(path, Step(("write", path), "none", f"saved MTU is {port.saved_mtu_bytes}", want.pci,
                                        networkd_plan.dropin_text(want.mtu_bytes)))
    return list(steps.values())


def _awaited(request: Request, node: Node) -> tuple[str, ...]:
    """Links that networkd had configured and must have configured again; others never get there."""
    netdevs = list(dict.fromkeys(str(port.mtu_netdev) for want in request.ports if (port := node.port(want.pci))))
    links = node.networkd.links
    return tuple(name for name in netdevs if name in links and links[name].admin_state == "configured")


def plan(request: Request, node: Node) -> list[Step]:
    """Smallest list of steps. The running value goes first: a value that the device refuses is never saved."""
    steps = _runtime_steps(request, node) if request.runtime else []
    if not request.persistent or all(want.mtu_bytes is None for want in request.ports):
        return steps
    writes = _write_steps(request, node)
    pending = node.networkd.reload_pending
    if writes and not pending:
        # Outlives us if we are killed before the reload, so that the next run makes up for it.
        steps.append(Step(("write", PENDING_FILE), "none", "networkd has not read the new files yet"))
    steps += writes
    if request.runtime and (writes or pending):
        steps.append(Step(RELOAD, "link", "files changed", wait_for=_awaited(request, node)))
        steps.append(Step(("remove", PENDING_FILE), "none", "networkd has read the files"))
    return steps


def verify(request: Request, node: Node) -> list[Problem]:
    """What does not hold although every step reported success."""
    found = []
    for have, must in zip(state(request, node), predict(request, node)):
        for key, label in (("mtu_bytes", "netdev MTU"), ("saved_mtu_bytes", "saved MTU")):
            if have[key] != must[key]:
                found.append(Problem(f"{label} of {have['pci']}", str(have[key]), str(must[key]),
                                     "the tools reported success; read back after all steps"))
        port, shown = node.port(have["pci"]), mtu.rdma_port(node, have["pci"])
        if request.verify_rdma_mtu and port is not None and shown is not None and port.mtu_bytes is not None:
            derived = rdma_mtu_bytes(port.mtu_bytes)
            if shown.rdma_mtu_bytes != derived:
                found.append(Problem(f"RDMA MTU of {have['pci']}", str(shown.rdma_mtu_bytes), str(derived),
                                     f"derived from netdev MTU {port.mtu_bytes}"))
    if request.runtime:
        found += mtu.verify(request, node)
        for want in request.ports:
            found += tuning.verify(want.pci, want.settings, _have(want, node))
    return found + (list(node.rdma_problems) if request.verify_rdma_mtu else [])


def excluded(request: Request, node: Node) -> list[dict[str, t.Any]]:
    """Ports that are not listed and must not be used as rails, with the reasons."""
    listed = {want.pci for want in request.ports}
    return [{"pci": device.pci, "netdev": port.netdev, "excluded": port.excluded}
            for device in node.devices if device.pci not in listed for port in device.ports if port.excluded]


def details(request: Request, node: Node) -> list[dict[str, t.Any]]:
    """Each port with everything that was looked at."""
    found = []
    for want in request.ports:
        device, port = node.device(want.pci), node.port(want.pci) or Port(1)
        wanted = want.mtu_bytes if request.runtime and want.mtu_bytes is not None else port.mtu_bytes
        have = _have(want, node)
        found.append({
            "pci": want.pci,
            "rdma_device": device.rdma_device if device else None,
            "netdev": port.netdev,
            "wanted_mtu_bytes": want.mtu_bytes,
            "mtu_bytes": port.mtu_bytes,
            "saved_mtu_bytes": port.saved_mtu_bytes,
            "saved_mtu_file": port.saved_mtu_file,
            "network_file": port.network_file,
            "expected_rdma_mtu_bytes": rdma_mtu_bytes(wanted or 0),
            "rdma_mtu_bytes": (mtu.rdma_port(node, want.pci) or port).rdma_mtu_bytes,
            "bond": port.bond,
            "vlans": [vlan.name for vlan in port.vlans],
            "settings": {key: have.values.get(key) for key in want.settings},
            "maximums": {key: have.most[key] for key in want.settings if key in have.most},
        })
    return found
