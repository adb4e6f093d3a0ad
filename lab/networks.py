# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's network files as a site's provisioning leaves them, in the words of the manager that owns its ports.

The management port has its address. The rails are up and have none, and no MTU: both, and that a flap costs no
address (host-setup.md 1.5), are the role rail_network's to say. Pure: (path, content, mode) of each file.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lab.personas import Owner

PROVISIONED = "Written by provisioning, not by aidc.gpu_cluster"

# EUI-64 link-local addresses are networkd's default.
NETWORKD = """\
# {comment}
[Match]
Name={interface}

[Network]
{address}IPv6AcceptRA=no
"""
ADDRESS = "Address={address}\nConfigureWithoutCarrier=yes\n"

# The name and the mode that cloud-init gives it; netplan.io >= 0.104 knows ignore-carrier (host-setup.md 1.5).
NETPLAN = "etc/netplan/50-cloud-init.yaml"

# As nmcli writes it: the link-local address is not EUI-64, which moves the GIDs (mlx5-roce.md 3.2).
KEYFILE = """\
# {comment}
[connection]
id={interface}
type=ethernet
interface-name={interface}
autoconnect=true

[ipv4]
{address}
[ipv6]
method=link-local
addr-gen-mode=stable-privacy
"""
NM_CONF = """\
[main]
plugins=keyfile
no-auto-default=*

[keyfile]
unmanaged-devices=none

[device-provisioned]
match-device={devices}
ignore-carrier=yes
"""


@dataclass(frozen=True)
class Port:
    """An interface with its ADDRESS/LENGTH, if provisioning gives it one; ``rail`` None: the management port."""

    interface: str
    address: str | None
    rail: int | None

    @property
    def comment(self) -> str:
        return PROVISIONED + ("" if self.rail is None else f": rail {self.rail}")


File = tuple[str, str, int]


def _networkd(ports: Iterable[Port]) -> list[File]:
    return [(f"etc/systemd/network/{'10' if port.rail is None else '20'}-{port.interface}.network",
             NETWORKD.format(comment=port.comment, interface=port.interface,
                             address=ADDRESS.format(address=port.address) if port.address else ""), 0o644)
            for port in ports]


def _netplan(ports: Iterable[Port]) -> list[File]:
    lines = [f"# {PROVISIONED}", "network:", "  version: 2", "  ethernets:"]
    for port in ports:
        lines += [f"    {port.interface}:", "      dhcp4: false", "      accept-ra: false"]
        if port.address:
            lines += ["      ignore-carrier: true", f"      addresses: [{port.address}]"]
    return [(NETPLAN, "\n".join(lines) + "\n", 0o600)]


def _keyfile(port: Port) -> File:
    ipv4 = f"method=manual\naddress1={port.address}\n" if port.address else "method=disabled\n"
    return (f"etc/NetworkManager/system-connections/{port.interface}.nmconnection",
            KEYFILE.format(comment=port.comment, interface=port.interface, address=ipv4), 0o600)


def _networkmanager(ports: Iterable[Port]) -> list[File]:
    listed = list(ports)
    devices = ",".join(f"interface-name:{port.interface}" for port in listed if port.address)
    return [("etc/NetworkManager/conf.d/10-provisioned.conf", NM_CONF.format(devices=devices), 0o644),
            *map(_keyfile, listed)]


def files(owner: Owner, ports: list[Port]) -> list[File]:
    return {"networkd": _networkd, "netplan": _netplan, "networkmanager": _networkmanager}[owner](ports)
