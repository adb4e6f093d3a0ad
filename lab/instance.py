# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One running lab: its name, folders, namespaces and lock.

Everything that a lab makes carries the instance's name, so that ``down`` finds it by looking at
the machine and not at a record that a killed ``up`` may not have written. Standard library only.
"""
from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.state import state_dir

NAME = re.compile(r"^[a-z][a-z0-9]{0,11}$")
NETNS_DIR = Path("/run/netns")
LOCK_SECONDS = 120.0


class LabError(Exception):
    """Something about the lab that the user must know; the message stands alone."""


class Instance:
    def __init__(self, name: str = "lab") -> None:
        if not NAME.match(name):
            raise LabError(f"instance name {name!r}: wanted 1 to 12 lower-case letters and digits")
        self.name = name
        self.state = state_dir()
        self.dir = self.state / "instances" / name
        self.cgroup = cgroup_mount() / f"aidc-lab-{name}"
        self.netns_prefix = f"aidc-{name}-"
        self.fabric = f"{self.netns_prefix}fabric"

    def netns(self, host: str) -> str:
        return f"{self.netns_prefix}{host}"

    def host_dir(self, host: str) -> Path:
        return self.dir / "hosts" / host

    def host_cgroup(self, host: str) -> Path:
        return self.cgroup / host

    def namespaces(self) -> list[str]:
        """This instance's network namespaces that exist now."""
        if not NETNS_DIR.is_dir():
            return []
        return sorted(path.name for path in NETNS_DIR.iterdir() if path.name.startswith(self.netns_prefix))

    def exists(self) -> bool:
        """Whether anything of it is there, however little."""
        return self.dir.exists() or self.cgroup.exists() or bool(self.namespaces())

    def read(self) -> dict[str, Any]:
        """What ``up`` recorded: fleet, status, hosts. Empty when there is no record."""
        try:
            return dict(json.loads((self.dir / "instance.json").read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {}

    def write(self, **values: Any) -> None:
        self.dir.mkdir(parents=True, exist_ok=True)
        target, temporary = self.dir / "instance.json", self.dir / ".instance.json"
        temporary.write_text(json.dumps({**self.read(), **values}, indent=1), encoding="utf-8")
        temporary.replace(target)

    @contextlib.contextmanager
    def lock(self, doing: str, seconds: float = LOCK_SECONDS) -> Iterator[None]:
        """One ``up`` or ``down`` at a time, for all instances (they share /run/netns); others wait a while.

        The lock is on the state directory itself, so that no file is left over; who holds it is
        read from /proc/locks.
        """
        fd, start, said = os.open(self.state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), time.monotonic(), False
        try:
            while not _try_lock(fd):
                if time.monotonic() - start > seconds:
                    raise LabError(f"lab {doing}: {_holder(fd)} has been working on a lab in {self.state} "
                                   f"for {seconds:.0f} s; wait for it or end it")
                if not said:
                    print(f"lab: waiting for {_holder(fd)}", flush=True)
                    said = True
                time.sleep(0.1)
            yield
        finally:
            os.close(fd)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(fd: int) -> str:
    stat = os.fstat(fd)
    wanted = f"{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}:{stat.st_ino}"
    for line in Path("/proc/locks").read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if wanted in fields and "FLOCK" in fields and "->" not in fields:
            pid = fields[4]
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                return f"process {pid} ({command.strip()})"
    return "another process"


def cgroup_mount() -> Path:
    """Where cgroup version 2 is mounted (on hybrid machines beside version 1)."""
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if fields[2] == "cgroup2":
            return Path(fields[1])
    raise LabError("no cgroup version 2 hierarchy is mounted; the lab ends its processes through one")
