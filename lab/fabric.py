# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network between the hosts: one bridge per rail and leaf, one for management.

It lives in a network namespace of its own without a way out. Rates are scaled down and shaped on
the fabric's side of each rail, so that ``tc`` inside a host stays free (simulation.md 0b.8).
"""
from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from lab.instance import Instance, LabError

# Real rate / shaped rate: 400 Gb/s -> 40 Mb/s, so that two cores carry 8 hosts (simulation.md 0.5).
RATE_SCALE = 10_000
# What a switch port carries at layer 2, as an interface MTU (mlx5-roce.md 2.1: 9216 is the usual choice).
LEAF_MTU_BYTES = 9216
# A small bucket, or its first burst makes short measurements too fast (simulation.md 0.5).
BUCKET = "burst 32k latency 100ms"


@dataclass(frozen=True)
class Port:
    """One cable: a host's interface and the bridge that it ends on. ``rate_gbps`` None: not shaped."""

    interface: str
    mac: str
    fabric_interface: str
    bridge: str
    rate_gbps: float | None = None


def run(argv: list[str], text: str | None = None) -> str:
    """Run a tool of iproute2 or ethtool; an error carries the tool's own words."""
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def _batch(netns: str, lines: Iterable[str], tool: str = "ip") -> None:
    run([tool, "-n", netns, "-batch", "-"], "\n".join(lines) + "\n")


def scaled_bit(rate_gbps: float) -> int:
    return int(rate_gbps * 1e9 / RATE_SCALE)


def create(instance: Instance, bridges: Iterable[str], management: str, hosts: Iterable[str]) -> None:
    """Make the namespaces and the bridges; ``management`` is the fabric's own ADDRESS/LENGTH."""
    for name in [instance.fabric, *(instance.netns(host) for host in hosts)]:
        run(["ip", "netns", "add", name])
    lines = ["link set lo up", "link add br-mgmt type bridge", "link set br-mgmt up",
             f"addr add {management} dev br-mgmt"]
    for bridge in bridges:
        lines += [f"link add {bridge} type bridge", f"link set {bridge} mtu {LEAF_MTU_BYTES} up"]
    _batch(instance.fabric, lines)


def connect(instance: Instance, host: str, ports: Iterable[Port]) -> None:
    """Give ``host`` new links, as a reboot does: default MTU, no addresses, the MACs of its hardware.

    The namespace outlives a reboot; links that stayed would keep MTU and addresses, and a test of
    persistence would pass without any file (simulation.md 0b.6).
    """
    ports, netns = list(ports), instance.netns(host)
    unplug(instance, ports)
    lines = []
    for port in ports:
        lines += [
            f"link add {port.fabric_interface} type veth peer name {port.interface} address {port.mac} netns {netns}",
            f"link set {port.fabric_interface} master {port.bridge} mtu "
            f"{1500 if port.rate_gbps is None else LEAF_MTU_BYTES} up",
        ]
    _batch(instance.fabric, lines)
    _batch(netns, ["link set lo up"])
    shaped = [port for port in ports if port.rate_gbps is not None]
    if shaped:
        _batch(instance.fabric, [
            f"qdisc add dev {port.fabric_interface} root tbf rate {scaled_bit(port.rate_gbps or 0)}bit {BUCKET}"
            for port in shaped
        ], tool="tc")
    for port in shaped:
        # Aggregated packets would pass a port whose MTU is too small for them (simulation.md 0b.7).
        run(["ip", "netns", "exec", netns, "ethtool", "-K", port.interface, "tso", "off", "gso", "off"])


def plugged(instance: Instance) -> set[str]:
    """The fabric's ends of all cables that there are now."""
    links = json.loads(run(["ip", "-n", instance.fabric, "-j", "link", "show", "type", "veth"]) or "[]")
    return {link["ifname"] for link in links}


def unplug(instance: Instance, ports: Iterable[Port]) -> None:
    """Take cables away, and with them the host's interfaces."""
    present = plugged(instance)
    lines = [f"link del {port.fabric_interface}" for port in ports if port.fabric_interface in present]
    if lines:
        _batch(instance.fabric, lines)


def disconnect(instance: Instance) -> None:
    """Delete this instance's namespaces, and with them every link."""
    for name in instance.namespaces():
        run(["ip", "netns", "del", name])
