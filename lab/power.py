# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power of a host, and both reboots (mlx5-roce.md 4.8, 5.5)."""
from __future__ import annotations

import contextlib
import os
import subprocess
import time

from lab import cgroup, fabric, lifecycle
from lab.faults import scope
from lab.instance import Instance, LabError

SECONDS = 60.0


def on(instance: Instance, host: str) -> None:
    """Switch ``host`` on, unless it is; returns before it runs."""
    if not cgroup.populated(instance.host_cgroup(host)):
        lifecycle.power_on(instance, host)


def off(instance: Instance, host: str) -> None:
    """Pull the plug: nothing in the host gets a word, the switch sees no carrier. Can be repeated."""
    cgroup.kill(instance.host_cgroup(host))
    if (instance.host_cgroup(host) / "inside").exists():
        cgroup.remove(instance.host_cgroup(host) / "inside")
    (instance.host_dir(host) / "pid").unlink(missing_ok=True)
    fabric.unplug(instance, scope.read_host(instance.host_dir(host)).ports)


def running(instance: Instance, host: str) -> int | None:
    """PID 1 of ``host`` once it is systemd, with all mounts made; None while the host is off or just starting."""
    with contextlib.suppress(LabError, OSError):
        pid = lifecycle.init_pid(instance, host)
        if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "systemd":
            return pid
    return None


def wait_until_running(instance: Instance, host: str, before: int | None = None, seconds: float = SECONDS) -> None:
    """Wait until systemd of ``host``, with another PID than ``before``, says that all runs."""
    deadline, state = time.monotonic() + seconds, "off"
    while time.monotonic() < deadline:
        time.sleep(0.1)
        pid = running(instance, host)
        if pid is None or pid == before:
            continue
        with contextlib.suppress(LabError, subprocess.TimeoutExpired):
            done = subprocess.run(lifecycle.inside(instance, host, ["systemctl", "is-system-running", "--wait"]),
                                  capture_output=True, text=True, timeout=seconds, check=False)
            state = done.stdout.strip() or state
            if state == "running":
                return
    raise LabError(f"{host} is {state}, wanted running within {seconds:.0f} s; "
                   f"{lifecycle.console_tail(instance, host)}")


def reboot(instance: Instance, host: str, cold: bool = False) -> float:
    """Reboot as the host's own root would (warm), or take its power away and give it back (cold).

    Returns the seconds until it runs again.
    """
    known(instance, host)
    before, start = lifecycle.init_pid(instance, host), time.monotonic()
    if cold:
        off(instance, host)
        on(instance, host)
    else:
        subprocess.run(lifecycle.inside(instance, host, ["systemctl", "reboot"]), check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until_running(instance, host, before)
    return time.monotonic() - start


def known(instance: Instance, host: str) -> scope.Host:
    there = scope.hosts(instance)
    if host not in there:
        raise LabError(f"no host {host!r}; there are: {', '.join(there)}")
    return there[host]
