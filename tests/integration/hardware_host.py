# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host as the launcher makes it, cut down to its hardware: network namespace, daemon, mount namespace with /sys.

Nothing is named on the machine: namespaces live as long as their processes, which end with their standard input.
"""
from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lab.hardware.mount import daemon_argv
from lab.hardware.spec import node_spec

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
PACKAGE = ROOT / "lab" / "repository" / "packages" / "ibverbs-utils"
# Runs in the host's mount namespace; arguments: root directory, specification, socket.
INSIDE = """
import os, socket, sys
from lab import syscalls
from lab.hardware import layout, mount, spec
root, node, number = sys.argv[1], spec.NodeSpec.from_json(open(sys.argv[2]).read()), int(sys.argv[3])
syscalls.unshare(syscalls.CLONE_NEWNS)
syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
syscalls.mount("hwtest", root, "tmpfs")
os.chdir(root)
for name in ("usr", "proc", "hardware", *layout.directories(node)):
    os.makedirs(name, exist_ok=True)
for name in ("bin", "lib", "lib64"):
    os.symlink("usr/" + name, name)
for name in ("usr", "proc"):
    syscalls.mount("/" + name, name, None, syscalls.MS_BIND)
mount.hand_over(root + "/hardware", socket.socket(fileno=number))
for source, target in layout.binds(node):
    syscalls.mount("hardware/" + source, target, None, syscalls.MS_BIND)
syscalls.umount2("hardware", syscalls.MNT_DETACH)
print("up", flush=True)
sys.stdin.read()
"""


def until(condition: Callable[[], bool], seconds: float = 5) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Host:
    """One emulated host of a class; ``path`` gives its files as this process reaches them."""

    def __init__(self, directory: Path, class_name: str = "gb200") -> None:
        self.directory = directory
        self.spec = node_spec(class_name, "hwtest", 3)
        self.spec_file = directory / "spec.json"
        self.spec_file.write_text(self.spec.to_json(), encoding="utf-8")
        self.root = directory / "root"
        for name in ("root", "sysfs"):
            (directory / name).mkdir()
        self.netns = self._keep(["unshare", "--net", "cat"])
        own = os.readlink("/proc/self/ns/net")
        assert until(lambda: os.readlink(f"/proc/{self.netns.pid}/ns/net") != own)
        for rail in range(len(self.spec.rails)):
            self.make_link(rail)
        launcher_end, daemon_end = socket.socketpair()
        argv = daemon_argv(str(self.spec_file), daemon_end.fileno(), str(directory / "sysfs"))
        with daemon_end:
            self.daemon = subprocess.Popen(
                self.enter_net(argv), env=ENVIRONMENT, cwd=ROOT, pass_fds=[daemon_end.fileno()])
        inside = [sys.executable, "-c", INSIDE, str(self.root), str(self.spec_file), str(launcher_end.fileno())]
        with launcher_end:
            self.mounter = self._keep(inside, pass_fds=[launcher_end.fileno()])
        assert self.mounter.stdout is not None
        assert self.mounter.stdout.readline() == "up\n"

    @staticmethod
    def _keep(argv: list[str], pass_fds: list[int] | None = None) -> subprocess.Popen[str]:
        """A process that ends with its standard input, so nothing stays behind when pytest is killed."""
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT, cwd=ROOT,
                                text=True, pass_fds=pass_fds or [])

    def enter_net(self, argv: list[str]) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.netns.pid}/ns/net", *argv]

    def ip(self, command: str) -> None:
        subprocess.run(self.enter_net(["ip", *command.split()]), check=True, timeout=10)

    def make_link(self, rail: int) -> None:
        own = self.spec.rails[rail]
        self.ip(f"link add {own.netdev} address {own.mac} type veth peer name peer{rail}")
        self.ip(f"link set peer{rail} up")
        self.ip(f"link set {own.netdev} up")

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """A command inside the host."""
        enter = ["nsenter", f"--net=/proc/{self.netns.pid}/ns/net", f"--mount=/proc/{self.mounter.pid}/ns/mnt"]
        return subprocess.run([*enter, "chroot", str(self.root), *argv], capture_output=True, text=True, timeout=10,
                              check=False)

    def path(self, name: str) -> Path:
        return Path(f"/proc/{self.mounter.pid}/root{self.root}") / name

    def read(self, name: str) -> str:
        return self.path(name).read_text(encoding="utf-8").rstrip("\n")

    def ibv_devinfo(self, *options: str) -> subprocess.CompletedProcess[str]:
        tool = (PACKAGE / "usr/bin/ibv_devinfo").read_text(encoding="utf-8")
        return self.run("/usr/bin/python3", "-c", tool, *options)

    def gids(self, rail: int) -> list[tuple[int, str, str, str]]:
        """Used slots: index, GID, type, netdev."""
        port = f"sys/class/infiniband/{self.spec.rails[rail].rdma}/ports/1"
        found = []
        for index in range(64):
            gid = self.read(f"{port}/gids/{index}")
            if gid.replace(":", "").strip("0"):
                attrs = f"{port}/gid_attrs"
                found.append((index, gid, self.read(f"{attrs}/types/{index}"), self.read(f"{attrs}/ndevs/{index}")))
        return found

    def close(self) -> None:
        """The mount goes with its namespace, the daemon with the mount."""
        for process in (self.mounter, self.netns):
            process.communicate(timeout=10)
        try:
            self.daemon.wait(timeout=10)
        finally:
            if self.daemon.poll() is None:
                self.daemon.send_signal(signal.SIGKILL)
                self.daemon.wait()
