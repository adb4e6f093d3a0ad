# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host looks like to a role: its release and who owns its network.

A persona is a Debian image, perhaps with a layer on it. ``ubuntu`` is not Ubuntu: it has Ubuntu's os-release,
release name in the repository and netplan; ``rhel-nm`` has RHEL's NetworkManager keyfiles and stays Debian in all else.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lab import image, kernel, layer

Owner = Literal["networkd", "netplan", "networkmanager"]
DEFAULT = "debian13"

# Ubuntu 24.04.1's own words; netplan.io is part of every Ubuntu server.
UBUNTU = layer.install("netplan.io") + r"""
rm "$root/etc/os-release"
cat >"$root/usr/lib/os-release" <<END
PRETTY_NAME="Ubuntu 24.04.1 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
VERSION="24.04.1 LTS (Noble Numbat)"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=noble
END
ln -s ../usr/lib/os-release "$root/etc/os-release"
printf 'DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE=24.04\nDISTRIB_CODENAME=noble\nDISTRIB_DESCRIPTION="Ubuntu 24.04.1 LTS"\n' \
    >"$root/etc/lsb-release"
echo trixie/sid >"$root/etc/debian_version"
"""

# Debian's udev rule would keep NetworkManager off veth ports (simulation.md 0.7).
RHEL_NM = layer.install("network-manager") + r"""
inside systemctl disable systemd-networkd.service
inside systemctl mask systemd-networkd.service systemd-networkd.socket NetworkManager-wait-online.service
mkdir -p "$root/etc/udev/rules.d"
ln -s /dev/null "$root/etc/udev/rules.d/85-nm-unmanaged.rules"
"""


@dataclass(frozen=True)
class Persona:
    name: str
    suite: str
    owner: Owner
    body: str = ""
    # Release name that the host asks the repository for.
    release: str = ""

    @property
    def repository_suite(self) -> str:
        return self.release or self.suite


PERSONAS = {persona.name: persona for persona in (
    Persona("debian13", "trixie", "networkd"),
    Persona("debian12", "bookworm", "networkd"),
    Persona("ubuntu", "trixie", "netplan", UBUNTU, "noble"),
    Persona("rhel-nm", "trixie", "networkmanager", RHEL_NM),
)}


def ensure(cache: Path, name: str, cgroup: Path, say: Callable[[str], None]) -> tuple[Path, ...]:
    """The lower folders of a host's root, top first, built first (in ``cgroup``) where they are not there."""
    persona = PERSONAS[name]
    base = image.ensure(cache, cgroup, say, persona.suite)
    lower = (layer.ensure(cache, kernel.NAME, (base,), kernel.body(), cgroup, say), base)
    if not persona.body:
        return lower
    return (layer.ensure(cache, name, (base,), persona.body, cgroup, say), *lower)
