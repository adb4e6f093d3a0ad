# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in a host's root file system beside the image, as a site's provisioning leaves it.

Two layers: ``guest`` (the same for all hosts: settings) and the host's own upper layer (name, addresses,
keys). The launcher sets no address and no MTU: the host's network manager does, from the files written here.
"""
from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import subprocess
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lab import networks
from lab.fleet import Fleet, Host
from lab.image import USER
from lab.instance import Instance, LabError

SOURCE = Path(__file__).parent / "guest"
SUDOERS = f"etc/sudoers.d/{USER}"
MODES = {SUDOERS: 0o440}
# Behind a jump host nothing comes in from the fabric's own address, which is where users come from.
NO_DIRECT_WAY = "DenyUsers *@{fabric}\n"

@dataclass(frozen=True)
class Keys:
    """The instance's way in for its user, made by ``up``: an SSH key, and a password where sudo asks for one."""

    private: Path
    password: Path

    @property
    def public(self) -> str:
        return self.private.with_suffix(".pub").read_text(encoding="utf-8")


def make_keys(directory: Path) -> Keys:
    keys = Keys(directory / "id_ed25519", directory / "become_password")
    if not keys.private.exists():
        _keygen(keys.private, "aidc-lab")
    put(keys.password, secrets.token_urlsafe(12), 0o600)
    return keys


def _keygen(private: Path, comment: str) -> None:
    done = subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(private)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"ssh-keygen: {(done.stderr or done.stdout).strip()}")


def password_hash(password: str) -> str:
    """crypt(3) of the C library, SHA-512; Python's own module is gone since 3.13."""
    crypt = ctypes.CDLL("libcrypt.so.1").crypt
    crypt.restype, crypt.argtypes = ctypes.c_char_p, (ctypes.c_char_p, ctypes.c_char_p)
    made: bytes | None = crypt(password.encode(), f"$6${secrets.token_hex(8)}".encode())
    if made is None or not made.startswith(b"$6$"):
        raise LabError("crypt: this machine's libcrypt makes no SHA-512 hash")
    return made.decode("ascii")


def build_layer(target: Path) -> None:
    """Copy the tracked guest files to ``target`` with root's ownership, whoever owns the checkout."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    os.chmod(target, 0o755)
    for base, dirs, names in os.walk(SOURCE):
        relative = Path(base).relative_to(SOURCE)
        for name in dirs:
            _directory(target / relative / name)
        for name in names:
            where, file = str(relative / name), Path(base) / name
            mode = MODES.get(where, 0o755 if os.access(file, os.X_OK) and file.stat().st_mode & 0o100 else 0o644)
            put(target / where, file.read_bytes(), mode)


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


def _ports(fleet: Fleet, host: Host, rails: Iterable[str]) -> list[networks.Port]:
    management = f"{fleet.management_address(host)}/{fleet.management.prefixlen}"
    return [networks.Port("eth0", management, None),
            *(networks.Port(interface, None, rail) for rail, interface in enumerate(rails))]


def _access(fleet: Fleet, host: Host, upper: Path, lower: Path, keys: Keys) -> None:
    """What makes a way in harder: sudo with a password, no way but through the jump host."""
    if host.sudo_password:
        put(upper / SUDOERS, f"{USER} ALL=(ALL:ALL) ALL\n", 0o440)
        lines = (lower / "etc/shadow").read_text(encoding="utf-8").splitlines()
        hashed = password_hash(keys.password.read_text(encoding="utf-8"))
        text = "\n".join(":".join([USER, hashed, *line.split(":")[2:]]) if line.startswith(f"{USER}:") else line
                         for line in lines)
        put(upper / "etc/shadow", text + "\n", 0o640)
    if fleet.behind_jump(host):
        put(upper / "etc/ssh/sshd_config.d/20-jump.conf", NO_DIRECT_WAY.format(fabric=fleet.fabric_address()))


def seed(instance: Instance, fleet: Fleet, host: Host, rails: Iterable[str], lower: Path, keys: Keys) -> str:
    """Fill ``host``'s upper layer; ``rails`` are its interface names in rail order, ``lower`` its image.

    Returns its host key.
    """
    upper = instance.host_dir(host.name) / "upper"
    owner = user_id(lower)
    put(upper / "etc/hostname", host.name + "\n")
    put(upper / "etc/machine-id", uuid.uuid4().hex + "\n", 0o444)
    names = "".join(f"{fleet.management_address(other)} {other.name}\n" for other in fleet.hosts)
    put(upper / "etc/hosts", f"127.0.0.1 localhost\n::1 localhost\n{names}")
    for path, content, mode in networks.files(host.persona.owner, _ports(fleet, host, rails)):
        put(upper / path, content, mode)
    _access(fleet, host, upper, lower, keys)
    home = upper / f"home/{USER}"
    put(home / ".ssh/authorized_keys", keys.public, 0o600, owner)
    for directory in (home, home / ".ssh"):
        os.chown(directory, owner, owner)
        os.chmod(directory, 0o700)
    private = upper / "etc/ssh/ssh_host_ed25519_key"
    _directory(private.parent)
    _keygen(private, host.name)
    return private.with_suffix(".pub").read_text(encoding="utf-8").rsplit(" ", 1)[0]
