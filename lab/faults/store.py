# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which faults are set: one file in the instance's folder, and the lock around it.

A record is written before the change it is about, so that after a kill the next command knows of it.
"""
from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from lab.faults.table import FaultError
from lab.instance import LOCK_SECONDS, Instance

# set: as wanted. setting, clearing: work that may have been interrupted, or waits for the host's next boot.
# fired: an armed fault has struck.
STATES = {"set": "set", "setting": "not finished", "waiting": "set at the next boot",
          "clearing": "cleared at the next boot or clear", "fired": "has struck"}


@dataclass
class Record:
    name: str
    target: str
    parameters: dict[str, Any]
    row: dict[str, Any]
    touched: list[str]
    state: str = "setting"

    def same(self, other: Record) -> bool:
        return (self.name, self.target, self.parameters) == (other.name, other.target, other.parameters)

    def title(self) -> str:
        return " ".join([self.name, self.target, *(f"{key}={value}" for key, value in self.parameters.items())])


def read(instance: Instance) -> list[Record]:
    try:
        text = (instance.dir / "faults.json").read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [Record(**entry) for entry in json.loads(text)]


def write(instance: Instance, records: list[Record]) -> None:
    target, temporary = instance.dir / "faults.json", instance.dir / ".faults.json"
    temporary.write_text(json.dumps([asdict(record) for record in records], indent=1), encoding="utf-8")
    temporary.replace(target)


@contextlib.contextmanager
def locked(instance: Instance, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """One change of faults at a time. Nobody may wait for a host's boot inside: the boot takes it, too."""
    try:
        fd = os.open(instance.dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise FaultError(f"{instance.name} is not up; start it with: ./lab/lab up") from None
    deadline = time.monotonic() + seconds
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise FaultError(f"another command has been changing faults of {instance.name} "
                                     f"for {seconds:.0f} s") from None
                time.sleep(0.02)
        yield
    finally:
        os.close(fd)
