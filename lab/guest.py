# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in a host's root file system beside the image, as a site's provisioning leaves it.

Two layers: ``guest`` (the same for all hosts: settings and stand-in tools) and the host's own
upper layer (name, addresses, keys). The launcher sets no address and no MTU: networkd does, from
the files written here.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lab.fleet import Fleet, Host
from lab.image import USER
from lab.instance import Instance, LabError

SOURCES = (Path(__file__).parent / "guest", Path(__file__).parent / "hardware" / "guest")
MODES = {"etc/sudoers.d/ops": 0o440}

MANAGEMENT_NETWORK = """\
[Match]
Name=eth0

[Network]
Address={address}
ConfigureWithoutCarrier=yes
IPv6AcceptRA=no
"""

# EUI-64 link-local addresses are networkd's default; the carrier is ignored so that a flap costs
# no address and no GID (host-setup.md 1.5).
RAIL_NETWORK = """\
# Written by provisioning, not by aidc.gpu_cluster: rail {rail}
[Match]
Name={interface}

[Network]
Address={address}
ConfigureWithoutCarrier=yes
IPv6AcceptRA=no
"""


@dataclass(frozen=True)
class Keys:
    """The instance's key for its user, made by ``up``."""

    private: Path

    @property
    def public(self) -> str:
        return self.private.with_suffix(".pub").read_text(encoding="utf-8")


def make_keys(directory: Path) -> Keys:
    private = directory / "id_ed25519"
    if not private.exists():
        _keygen(private, "aidc-lab")
    return Keys(private)


def _keygen(private: Path, comment: str) -> None:
    done = subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(private)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"ssh-keygen: {(done.stderr or done.stdout).strip()}")


def build_layer(target: Path, programs: Path) -> None:
    """Copy the tracked guest files to ``target`` with root's ownership, whoever owns the checkout.

    ``programs`` is the folder of the compiled stand-ins; names that are links stay links.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    os.chmod(target, 0o755)
    for source in SOURCES:
        for base, dirs, names in os.walk(source):
            relative = Path(base).relative_to(source)
            for name in dirs:
                _directory(target / relative / name)
            for name in names:
                where, file = str(relative / name), Path(base) / name
                mode = MODES.get(where, 0o755 if os.access(file, os.X_OK) and file.stat().st_mode & 0o100 else 0o644)
                put(target / where, file.read_bytes(), mode)
    _directory(target / "usr/local/bin")
    shutil.copytree(programs, target / "usr/local/bin", symlinks=True, dirs_exist_ok=True)


def _directory(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    os.chmod(path, 0o755)


def put(path: Path, content: bytes | str, mode: int = 0o644, owner: int = 0) -> None:
    """Write one file of a root file system; missing directories get mode 0755."""
    missing = [parent for parent in path.parents if not parent.exists()]
    for parent in reversed(missing):
        _directory(parent)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.chmod(path, mode)
    os.chown(path, owner, owner)


def user_id(image: Path) -> int:
    for line in (image / "etc/passwd").read_text(encoding="utf-8").splitlines():
        fields = line.split(":")
        if fields[0] == USER:
            return int(fields[2])
    raise LabError(f"{image}: no user {USER} in etc/passwd")


def seed(instance: Instance, fleet: Fleet, host: Host, rails: Iterable[str], image: Path, keys: Keys) -> str:
    """Fill ``host``'s upper layer; ``rails`` are its interface names in rail order. Returns its host key."""
    upper = instance.host_dir(host.name) / "upper"
    owner = user_id(image)
    put(upper / "etc/hostname", host.name + "\n")
    put(upper / "etc/machine-id", uuid.uuid4().hex + "\n", 0o444)
    names = "".join(f"{fleet.management_address(other)} {other.name}\n" for other in fleet.hosts)
    put(upper / "etc/hosts", f"127.0.0.1 localhost\n::1 localhost\n{names}")
    network = upper / "etc/systemd/network"
    length = fleet.management.prefixlen
    put(network / "10-eth0.network", MANAGEMENT_NETWORK.format(address=f"{fleet.management_address(host)}/{length}"))
    for rail, interface in enumerate(rails):
        text = RAIL_NETWORK.format(rail=rail, interface=interface, address=fleet.rail_interface(host, rail))
        put(network / f"20-{interface}.network", text)
    home = upper / f"home/{USER}"
    put(home / ".ssh/authorized_keys", keys.public, 0o600, owner)
    for directory in (home, home / ".ssh"):
        os.chown(directory, owner, owner)
        os.chmod(directory, 0o700)
    private = upper / "etc/ssh/ssh_host_ed25519_key"
    _directory(private.parent)
    _keygen(private, host.name)
    return private.with_suffix(".pub").read_text(encoding="utf-8").rsplit(" ", 1)[0]
