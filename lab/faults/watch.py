# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait outside of a host for a moment inside, then take its power: python3 -m lab.faults.watch INSTANCE HOST ...

Open MPI 5 runs as prterun, so the names of a program are given, several of them (simulation.md 0b.9).
"""
from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from lab import cgroup, power
from lab.faults import store
from lab.instance import Instance

POLL_SECONDS = 0.02
# OpenSSH names the process of a session after the login: "sshd-session: ops@notty" ("sshd: ..." before 9.8).
LOGIN = re.compile(r"sshd(-session)?: [^ @\[]+@")


def command(pid: int) -> list[str]:
    """Name of a process as the kernel has it, then its command line; empty when it is gone or not in a host."""
    try:
        if os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid"):
            return []
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return []
    return [name, line]


def is_program(names: Iterable[str]) -> Callable[[list[str]], bool]:
    # The kernel keeps 15 characters of a name.
    short = {name[:15] for name in names}
    return lambda words: bool(words) and words[0] in short


def is_login(words: list[str]) -> bool:
    return bool(words) and LOGIN.match(words[1]) is not None


def wait(processes: Callable[[], Iterable[int]], look: Callable[[int], list[str]],
         matches: Callable[[list[str]], bool], count: int, pause: Callable[[], None]) -> None:
    """Return when ``count`` processes have matched that were not there at the first look."""
    seen = {pid for pid in processes() if matches(look(pid))}
    found = 0
    # A process may become what is waited for after its birth (exec, a changed title), so all are looked at each time.
    while True:
        now = set(processes())
        fresh = {pid for pid in now - seen if matches(look(pid))}
        found += len(fresh)
        if found >= count:
            return
        seen = (seen & now) | fresh
        pause()


def main() -> None:
    name, host, process, logins, delay = sys.argv[1:]
    instance = Instance(name)
    everything = instance.host_cgroup(host)  # what `lab exec` starts is not in the host's own part of it
    count = int(logins)
    matches = is_login if count else is_program(process.split(","))
    armed = [True]

    def pause() -> None:
        if armed:
            armed.clear()
            print("armed", flush=True)
        time.sleep(POLL_SECONDS)

    wait(lambda: cgroup.pids(everything), command, matches, max(count, 1), pause)
    time.sleep(float(delay))
    power.off(instance, host)
    with store.locked(instance):
        records = store.read(instance)
        for record in records:
            if record.target == host and any("watch" in step for step in record.row["steps"]):
                record.state = "fired"
        store.write(instance, records)


if __name__ == "__main__":
    main()
