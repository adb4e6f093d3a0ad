# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Can this machine run the lab? Each check names what is missing and what to do."""
from __future__ import annotations

import contextlib
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lab import fabric, netns
from lab import syscalls as sc
from lab.fleet import Fleet
from lab.hardware.spec import node_spec
from lab.instance import Instance, LabError
from lab.state import StateError

TOOLS = {
    "ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool", "mmdebstrap": "mmdebstrap", "ssh": "openssh-client",
    "ssh-keygen": "openssh-client", "nsenter": "util-linux", "tar": "tar",
}
MEMORY_PER_HOST_BYTES = 60_000_000
DISK_BYTES = 2_500_000_000
# Above this share of what the machine moves unshaped, a slow link could be a busy CPU.
LARGEST_SHARE = 0.4
ATTEMPTS = 3
# Counted in a running host: 5 of PID 1, one each of udevd and dbus; and one to spare.
INOTIFY_PER_HOST = 8
# Not a host's name (those have no dash), so that `down` sweeps what a killed check left.
PROBE = "doctor-"


@dataclass(frozen=True)
class Check:
    name: str
    ok: bool
    text: str


def _checked(name: str, probe: Callable[[], str]) -> Check:
    try:
        return Check(name, True, probe())
    except (OSError, LabError, StateError) as error:
        return Check(name, False, str(error))


def _root() -> str:
    if os.geteuid() != 0:
        raise LabError("not root: namespaces, mounts and cgroups need it; use sudo")
    return "yes"


def _tools() -> str:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        packages = sorted({TOOLS[tool] for tool in missing})
        raise LabError(f"missing {', '.join(missing)}: `make setup` installs {', '.join(packages)}")
    return ", ".join(TOOLS)


@contextlib.contextmanager
def _made(parent: Path) -> Iterator[Path]:
    """A folder for a probe below ``parent``; both are gone afterwards unless the parent was there."""
    there, probe = parent.exists(), parent / "doctor"
    probe.mkdir(parents=True)
    try:
        yield probe
    finally:
        probe.rmdir()
        if not there:
            parent.rmdir()


def _cgroup(instance: Instance) -> str:
    with _made(instance.cgroup) as probe:
        if not (probe / "cgroup.kill").exists():
            raise LabError("no cgroup.kill: Linux 5.14 or newer is needed")
    return f"version 2 at {instance.cgroup.parent}"


def _fuse() -> str:
    with open("/dev/fuse", "rb"):
        return "/dev/fuse opens"


def _in_child(function: Callable[[], None]) -> None:
    """Run ``function`` in a child process; its OSError comes back as one here."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            function()
        except OSError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        message = pipe.read().decode()
    os.waitpid(pid, 0)
    if message:
        raise LabError(message)


def _namespaces() -> str:
    # A user namespace owns each host's mounts, so that they stay as they are (guard/confine.py).
    _in_child(lambda: sc.unshare(sc.CLONE_NEWUSER | sc.CLONE_NEWNS | sc.CLONE_NEWUTS | sc.CLONE_NEWIPC | sc.CLONE_NEWPID
                                 | sc.CLONE_NEWNET | sc.CLONE_NEWCGROUP))
    return "user, mount, UTS, IPC, PID, network, cgroup"


def _seccomp() -> str:
    """The filter that each host starts under asks about new mounts (Linux 5.5; guard/filter.py)."""
    actions = Path("/proc/sys/kernel/seccomp/actions_avail")
    if not actions.exists() or "user_notif" not in actions.read_text(encoding="ascii").split():
        raise LabError("no system call filter with notification: CONFIG_SECCOMP_FILTER and Linux 5.5 are needed")
    return "filter with notification"


def _overlay(instance: Instance) -> str:
    with _made(instance.dir) as directory:
        for part in ("lower", "upper", "work", "root"):
            (directory / part).mkdir()

        def probe() -> None:
            sc.unshare(sc.CLONE_NEWNS)
            sc.mount(None, "/", None, sc.MS_REC | sc.MS_PRIVATE)
            data = f"lowerdir={directory}/lower,upperdir={directory}/upper,workdir={directory}/work"
            sc.mount("overlay", f"{directory}/root", "overlay", 0, data)

        try:
            _in_child(probe)
        finally:
            for part in ("lower", "upper", "work", "root"):
                shutil.rmtree(directory / part)
    return f"on {instance.state}"


def _room(state: Path, hosts: int) -> str:
    free = shutil.disk_usage(state).free
    if free < DISK_BYTES:
        raise LabError(f"{state}: {free // 1_000_000} MB of disk free, {DISK_BYTES // 1_000_000} MB needed")
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines())
    memory = int(fields["MemAvailable"].split()[0]) * 1024
    if memory < hosts * MEMORY_PER_HOST_BYTES:
        raise LabError(f"{memory // 1_000_000} MB of memory available, {hosts} hosts need "
                       f"{hosts * MEMORY_PER_HOST_BYTES // 1_000_000} MB")
    return f"disk {free // 1_000_000_000} GB free, memory {memory // 1_000_000_000} GB available"


def _inotify(hosts: int) -> str:
    """systemd watches files; with too few watchers its services fail without a word about the reason."""
    wanted, held = hosts * INOTIFY_PER_HOST, []
    try:
        # Tried, not computed: processes share instances, so that counting them in /proc gives too many.
        for _instance in range(wanted):
            held.append(sc.inotify_init())
    except OSError as error:
        limit = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text(encoding="ascii"))
        raise LabError(f"{hosts} hosts need {wanted} inotify instances, root can have {len(held)} more ({error}); "
                       f"raise the limit: sysctl fs.inotify.max_user_instances={limit + wanted}") from error
    finally:
        for fd in held:
            os.close(fd)
    return f"{wanted} instances can be had"


def fleet_gbps(fleet: Fleet) -> float:
    """All shaped rates of ``fleet`` together, in Gb/s on this machine."""
    rates = [rail.rate_gbps for host in fleet.hosts if host.leaf
             for rail in node_spec(host.node_class, host.name, host.number).rails]
    return sum(map(fabric.scaled_bit, rates)) / 1e9


def _pump(sender: socket.socket, stop: threading.Event) -> None:
    block = bytes(1 << 16)
    with contextlib.suppress(OSError):
        while not stop.is_set():
            sender.sendall(block)


def measure_gbps(instance: Instance, seconds: float = 1.0) -> float:
    """What an unshaped link of the lab's kind carries here, in Gb/s: TCP over a veth pair, offload off."""
    one, two = instance.netns(f"{PROBE}a"), instance.netns(f"{PROBE}b")
    mounted = netns.directory_mounted()
    try:
        for name in (one, two):
            fabric.run(["ip", "netns", "add", name])
        fabric.run(["ip", "-n", one, "link", "add", "p0", "type", "veth", "peer", "name", "p0", "netns", two])
        for name, address in ((one, "192.0.2.1/24"), (two, "192.0.2.2/24")):
            fabric.run(["ip", "-n", name, "addr", "add", address, "dev", "p0"])
            fabric.run(["ip", "-n", name, "link", "set", "p0", "up"])
            fabric.run(["ip", "netns", "exec", name, "ethtool", "-K", "p0", "tso", "off", "gso", "off"])
        with netns.entered(two):
            listener = socket.create_server(("192.0.2.2", 5001))
        with netns.entered(one):
            sender = socket.create_connection(("192.0.2.2", 5001), timeout=5)
        receiver, _peer = listener.accept()
        stop = threading.Event()
        thread = threading.Thread(target=_pump, args=(sender, stop), daemon=True)
        thread.start()
        start, received = time.monotonic(), 0
        while time.monotonic() - start < seconds:
            received += len(receiver.recv(1 << 18))
        elapsed = time.monotonic() - start
        stop.set()
        for connection in (receiver, sender, listener):
            connection.close()
        thread.join(timeout=5)
        return received * 8 / elapsed / 1e9
    finally:
        for name in (one, two):
            with contextlib.suppress(LabError):
                fabric.run(["ip", "netns", "del", name])
        if not mounted:
            netns.unmount_directory()


def _bandwidth(instance: Instance, fleet: Fleet) -> str:
    wanted, measured = fleet_gbps(fleet), 0.0
    for _attempt in range(ATTEMPTS):
        # Once is enough on a quiet machine; something else that runs for a moment is no reason to refuse.
        measured = max(measured, measure_gbps(instance))
        if wanted <= LARGEST_SHARE * measured:
            break
    text = (f"the fleet's links carry {wanted:.2f} Gb/s in all, an unshaped link here {measured:.1f} Gb/s "
            f"(at most {LARGEST_SHARE:.0%} may be used)")
    if wanted > LARGEST_SHARE * measured:
        raise LabError(f"{text}: use a smaller fleet, or a machine with less load")
    return text


def checks(instance: Instance, fleet: Fleet) -> list[Check]:
    """All checks, cheapest first; later ones are left out when root or a tool is missing."""
    result = [_checked("root", _root), _checked("tools", _tools)]
    if all(check.ok for check in result):
        result += [
            _checked("cgroup", lambda: _cgroup(instance)), _checked("FUSE", _fuse), _checked("namespaces", _namespaces),
            _checked("seccomp", _seccomp),
            _checked("overlay", lambda: _overlay(instance)),
            _checked("inotify", lambda: _inotify(len(fleet.hosts))),
            _checked("room", lambda: _room(instance.state, len(fleet.hosts))),
        ]
    if all(check.ok for check in result):
        result.append(_checked("bandwidth", lambda: _bandwidth(instance, fleet)))
    return result
