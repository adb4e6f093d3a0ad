# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The files of runs below the user's home: one folder per run, the lock, and the line in authorized_keys.

`.aidc/runs/RUN_ID/` (0700) holds the record, on the head also the key pair and what the launch needs.
"""
from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import tempfile
import time
import typing as t
from pathlib import Path

from .._host.errors import AidcError, Problem
from .._host.files import read_text, write_atomic
from .._host.machine import Machine
from . import authorized, processes
from .model import RUN_ID, Here, Record, read_record

BASE = ".aidc"
RECORD = "run.json"
KEY = "id"
KEY_TYPE = "ed25519"
_HOST_KEY = re.compile(r"^(ssh-|ecdsa-|sk-)\S+ [A-Za-z0-9+/]+={0,3}( |$)")


def home() -> Path:
    return Path(os.path.expanduser("~"))


def here() -> Here:
    boot_id = (read_text(Path("/proc/sys/kernel/random/boot_id")) or "").strip()
    return Here(socket.gethostname(), boot_id, time.time(), processes.start_of)


class Store:
    """The runs of this user on this host."""

    def __init__(self, home_dir: Path | None = None, authorized_keys: str = "") -> None:
        self.home = home_dir or home()
        self.base = self.home / BASE
        self.keys_file = Path(authorized_keys) if authorized_keys else self.home / ".ssh/authorized_keys"

    def machine(self) -> Machine:
        """What the host lock needs to lie below our folder: this user cannot write the host's own one."""
        return Machine(root=self.base)

    def prepare(self) -> None:
        for path in (self.base, self.base / "runs"):
            own_directory(path)

    def run_dir(self, run_id: str) -> Path:
        if not RUN_ID.fullmatch(run_id):
            raise AidcError([Problem("run_id", repr(run_id), "3 to 64 letters, digits, - and _")])
        return self.base / "runs" / run_id

    def run_ids(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self.base / "runs") if RUN_ID.fullmatch(name))
        except FileNotFoundError:
            return []

    def record(self, run_id: str) -> Record | None:
        text = read_text(self.run_dir(run_id) / RECORD)
        record = read_record(text) if text is not None else None
        return record if record is not None and record.run_id == run_id else None

    def records(self) -> list[Record]:
        return [record for record in map(self.record, self.run_ids()) if record is not None]

    def write_record(self, record: Record) -> None:
        write_atomic(self.run_dir(record.run_id) / RECORD, record.text(), 0o600, 0o700)

    def remove(self, run_id: str) -> bool:
        path = self.run_dir(run_id)
        if not path.exists():
            return False
        # The key first, so that a removal that is cut short leaves no key.
        (path / KEY).unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)
        return not path.exists()

    # -- authorized_keys ------------------------------------------------------------------------------

    def authorized_text(self) -> bytes:
        try:
            return self.keys_file.read_bytes()
        except FileNotFoundError:
            return b""

    def authorized_runs(self) -> list[str]:
        return authorized.runs_of(self.authorized_text())

    def edit_authorized(self, drop: t.Container[str], add: bytes | None = None) -> bool:
        old = self.authorized_text()
        new = authorized.edit(old, drop, add)
        if new == old:
            return False
        own_directory(self.keys_file.parent, tighten=False)
        _replace(self.keys_file, new)
        return True


def own_directory(path: Path, tighten: bool = True) -> None:
    """Make it (0700) if it is missing; refuse one that is a link or another user's."""
    path.mkdir(mode=0o700, exist_ok=True)
    info = os.lstat(path)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        got = f"mode {info.st_mode:o}, uid {info.st_uid}"
        raise AidcError([Problem(str(path), got, f"a directory of uid {os.geteuid()}", "remove it")])
    if tighten and info.st_mode & 0o077:
        path.chmod(0o700)


def _replace(path: Path, data: bytes) -> None:
    """Put ``data`` in place in one step (bytes: the file may hold what is no UTF-8).

    A link is followed. The mode stays, less write permission of others, with which sshd refuses the file.
    """
    target, mode = Path(os.path.realpath(path)), 0o600
    if target.exists():
        info = target.stat()
        mode = stat.S_IMODE(info.st_mode) & 0o755
        if info.st_uid != os.geteuid():
            raise AidcError([Problem(str(target), f"a file of uid {info.st_uid}", f"a file of uid {os.geteuid()}",
                                     "sshd refuses it, too; mend its owner")])
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def make_key(machine: Machine, run_dir: Path, comment: str) -> tuple[str, list[str]]:
    """A key pair without passphrase in the run's folder; the public key and the command. It asks nothing."""
    key = run_dir / KEY
    for path in (key, key.with_suffix(".pub")):
        path.unlink(missing_ok=True)
    argv = ["ssh-keygen", "-q", "-t", KEY_TYPE, "-N", "", "-C", comment, "-f", str(key)]
    done = machine.tool(*argv)
    if done.state != "ok":
        raise AidcError([Problem("ssh-keygen", done.why(), "a new key pair", "install OpenSSH's client")])
    public = (read_text(key.with_suffix(".pub")) or "").split()
    return " ".join(public[:2]), argv


def host_keys(directory: Path = Path("/etc/ssh")) -> list[str]:
    """Public host keys as sshd's own files have them, without the comment."""
    found = []
    for path in sorted(directory.glob("ssh_host_*_key.pub")):
        text = (read_text(path) or "").strip()
        if _HOST_KEY.match(text):
            found.append(" ".join(text.split()[:2]))
    return found


def addresses_of(name: str) -> list[str]:
    """Numeric addresses of a name or of an address; none if it cannot be resolved."""
    try:
        infos = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return list(dict.fromkeys(str(info[4][0]).partition("%")[0] for info in infos))
