# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One process per host, outside of it: boots it, and boots it again when it reboots.

    python -m lab.supervisor INSTANCE HOST

The kernel turns reboot(2) inside a PID namespace into the death of its PID 1 by SIGHUP (reboot) or
SIGINT (halt, power off), see reboot(2). Links are made anew at each boot; the hardware model is
told whether the boot is a warm one, and keeps what survives that (hardware/state.py). The faults
that outlive a reboot are set again after the links are there.
"""
from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab import boot, cgroup, fabric, faults
from lab import syscalls as sc
from lab.guard import process as guard
from lab.hardware import mount
from lab.hardware.door import DoorError
from lab.hardware.spec import NodeSpec
from lab.hardware.state import Event
from lab.instance import NETNS_DIR, Instance, LabError

NAMESPACES = sc.CLONE_NEWNS | sc.CLONE_NEWUTS | sc.CLONE_NEWIPC | sc.CLONE_NEWPID | sc.CLONE_NEWCGROUP


class Supervisor:
    def __init__(self, instance: Instance, host: str) -> None:
        self.instance, self.host = instance, host
        self.dir, self.cgroup = instance.host_dir(host), instance.host_cgroup(host)
        record: dict[str, Any] = json.loads((self.dir / "host.json").read_text(encoding="utf-8"))
        self.ports = [fabric.Port(**port) for port in record["ports"]]
        self.spec = NodeSpec.from_json(record["spec"]) if record["spec"] else None
        self.plan = boot.Plan(host, self.dir, tuple(map(Path, record["lower"])), self.spec)

    def run(self) -> None:
        """Boot until the host powers off."""
        kind = Event.COLD  # the host was off before this process was there
        while self.boot_once(kind) == signal.SIGHUP:
            self.log("rebooting")
            kind = Event.WARM
        self.log("powered off")
        (self.dir / "pid").unlink(missing_ok=True)
        # No power, no carrier: the network namespace would answer on without a host.
        fabric.unplug(self.instance, self.ports)

    def log(self, text: str) -> None:
        print(f"[{time.strftime('%H:%M:%S')}] lab: {self.host}: {text}", flush=True)

    def boot_once(self, kind: Event) -> int:
        """One boot, from new links to the end of PID 1. Returns the signal it ended by, or 0."""
        inside = self.cgroup / "inside"
        inside.mkdir(exist_ok=True)
        fabric.connect(self.instance, self.host, self.ports)
        with guard.running(NETNS_DIR / self.instance.netns(self.host)) as door, self.hardware_model(kind) as channel:
            self._with_faults(lambda: faults.before_boot(self.instance, self.host, kind.value))
            pid = os.fork()
            if pid == 0:
                self._guarded(lambda: self._enter_namespaces(inside, channel, door))
            door.close()
            if channel is not None:
                # Only the hardware model may end up with the FUSE descriptor, and only PID 1 with
                # this end of the channel (simulation.md 0b.4).
                channel.close()
            self._with_faults(lambda: faults.after_boot(self.instance, self.host, pid))
            _pid, status = os.waitpid(pid, 0)
        cgroup.kill(inside)
        cgroup.remove(inside)
        code = os.waitstatus_to_exitcode(status)
        return code - 128 if code > 128 else 0

    def _with_faults(self, function: Callable[[], None]) -> None:
        """A fault that cannot be set again is told, and the host boots all the same."""
        try:
            function()
        except (LabError, DoorError, OSError) as error:
            self.log(f"faults: {error}")

    @contextmanager
    def hardware_model(self, kind: Event) -> Iterator[socket.socket | None]:
        """The process that answers for the host's emulated hardware, for the time of one boot."""
        if self.spec is None:
            yield None
            return
        spec = self.dir / "spec.json"
        spec.write_text(self.spec.to_json(), encoding="utf-8")
        (self.dir / "realsys").mkdir(exist_ok=True)
        ours, theirs = socket.socketpair()
        namespace = NETNS_DIR / self.instance.netns(self.host)

        def enter() -> None:
            fd = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
            sc.setns(fd, sc.CLONE_NEWNET)

        daemon = subprocess.Popen(
            mount.daemon_argv(str(spec), theirs.fileno(), str(self.dir / "realsys"), more=(
                "--state", str(self.dir / "hardware.json"), "--door", str(self.dir / "door"), "--boot", kind.value,
                "--fabric", str(NETNS_DIR / self.instance.fabric), "--host", self.instance.name, self.host,
                "--processes", str(self.cgroup / "inside"),
                *(word for folder in (self.dir / "upper", *self.plan.lower) for word in ("--layer", str(folder))),
                *(word for port in self.ports if port.rate_gbps is not None
                  for word in ("--cable", port.fabric_interface)))),
            pass_fds=(theirs.fileno(),), preexec_fn=enter, stdin=subprocess.DEVNULL,
        )
        theirs.close()
        try:
            yield ours
        finally:
            ours.close()
            daemon.kill()
            daemon.wait()

    def _guarded(self, function: Any) -> None:
        """Run the child's part; whatever happens, the child never returns into the supervisor."""
        code = 1
        try:
            code = function()
        except BaseException as error:  # the child's last words; anything else would be lost
            self.log(f"boot failed: {type(error).__name__}: {error}")
        finally:
            os._exit(code)

    def _enter_namespaces(self, inside: Path, channel: socket.socket | None, door: socket.socket) -> int:
        """First child: into the namespaces; its own child is PID 1 there."""
        sc.set_pdeathsig(signal.SIGKILL)
        cgroup.enter(inside)
        namespace = os.open(NETNS_DIR / self.instance.netns(self.host), os.O_RDONLY | os.O_CLOEXEC)
        sc.setns(namespace, sc.CLONE_NEWNET)
        sc.unshare(NAMESPACES)
        sc.mount(None, "/", None, sc.MS_REC | sc.MS_PRIVATE)
        pid = os.fork()
        if pid == 0:
            self._guarded(lambda: self._first_process(channel, door))
        door.close()
        if channel is not None:
            channel.close()
        (self.dir / ".pid").write_text(f"{pid}\n", encoding="ascii")
        (self.dir / ".pid").replace(self.dir / "pid")
        _pid, status = os.waitpid(pid, 0)
        return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def _first_process(self, channel: socket.socket | None, door: socket.socket) -> int:
        sc.set_pdeathsig(signal.SIGKILL)
        os.setsid()
        boot.boot(self.plan, channel, door)
        return 1


def main() -> None:
    name, host = sys.argv[1:]
    Supervisor(Instance(name), host).run()


if __name__ == "__main__":
    main()
