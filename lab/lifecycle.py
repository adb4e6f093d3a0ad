# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start and remove a lab. Both may be killed at any moment; ``down`` then leaves nothing behind."""
from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab import attendants, cgroup, doctor, fabric, guest, image, inventory, layer, netns, personas
from lab.fleet import Fleet, Host
from lab.hardware.spec import NodeSpec, node_spec
from lab.instance import Instance, LabError
from lab.inventory import ROOT
from lab.repository import build as repository
from lab.standin import build as standin

# A locally administered prefix for the management ports, which are not the emulated hardware's.
MANAGEMENT_MAC = "02:ad:c0:00:00:{number:02x}"
BOOT_SECONDS = 60.0
# Cgroups beside those of the hosts, whose names have no hyphen.
REPOSITORY, BUILDERS = "lab-repository", "lab-image"


def say(text: str) -> None:
    print(f"lab: {text}", flush=True)


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    start = time.monotonic()
    yield
    say(f"{what} ({time.monotonic() - start:.1f} s)")


def bridge_name(leaf: str, rail: int) -> str:
    return f"{leaf}-r{rail}"


def cables(host: Host, spec: NodeSpec | None) -> list[fabric.Port]:
    """What is plugged into ``host``: management and one port per rail."""
    ports = [fabric.Port("eth0", MANAGEMENT_MAC.format(number=host.number), host.name, "br-mgmt")]
    for number, rail in enumerate(spec.rails if spec else ()):
        assert host.leaf is not None
        ports.append(fabric.Port(rail.netdev, rail.mac, f"{host.name}-r{number}", bridge_name(host.leaf, number),
                                 rail.rate_gbps))
    return ports


def build(fleet: Fleet, cache: Path, builders: Path) -> tuple[dict[str, tuple[Path, ...]], list[Path]]:
    """Build, in the cgroup ``builders``, what of a fleet's images, layers and package repositories is not there."""
    lower, repositories = {}, {}
    for name in sorted({host.persona.name for host in fleet.hosts}):
        lower[name] = personas.ensure(cache, name, builders, say)
        suite, base = personas.PERSONAS[name].suite, lower[name][-1]
        if suite not in repositories:
            programs = standin.ensure(cache, base, builders, say)
            repositories[suite] = repository.ensure(cache, base, programs, suite, builders, say)
    return lower, list(repositories.values())


class Up:
    """The steps of ``lab up`` for one instance; each leaves what the next one needs."""

    def __init__(self, instance: Instance, fleet: Fleet, directory: Path) -> None:
        self.instance, self.fleet, self.inventory = instance, fleet, directory
        self.specs = {host.name: node_spec(host.node_class, host.name, host.number) if host.leaf else None
                      for host in fleet.hosts}

    def run(self) -> None:
        with timed(f"files of {len(self.fleet.hosts)} hosts"):
            config = self.write_files(self.build())
        with timed("fabric"):
            self.make_fabric()
            self.start_repository()
        with timed(f"{len(self.fleet.hosts)} hosts answer on SSH"):
            self.start_hosts()
            self.wait_for_ssh()
        with timed("all services of all hosts running"):
            self.wait_until_running()
        target = inventory.write(self.instance, self.fleet, config, self.inventory)
        self.instance.write(status="up")
        say(f"inventory written to {target}")

    def check_machine(self) -> None:
        """First the record that ``down`` needs, then the checks; they make namespaces, too."""
        self.instance.write(status="starting", fleet=str(self.fleet.source), netns_mounted=netns.directory_mounted(),
                            inventory=str(self.inventory / "hosts.yml"), hosts=[h.name for h in self.fleet.hosts])
        self.instance.cgroup.mkdir(exist_ok=True)
        with timed("machine checked"):
            bad = [check for check in doctor.checks(self.instance, self.fleet) if not check.ok]
        if bad:
            raise LabError("this machine cannot run this fleet:\n" +
                           "\n".join(f"  {check.name}: {check.text}" for check in bad))

    def build(self) -> dict[str, tuple[Path, ...]]:
        """What the hosts stand on, and the folder of their mirror; the lower folders of each persona's root."""
        builders = self.instance.cgroup / BUILDERS
        builders.mkdir()
        lower, repositories = build(self.fleet, self.instance.state / "cache", builders)
        www = self.instance.dir / "www/debian"
        for name in ("dists", "pool"):
            (www / name).mkdir(parents=True)
        for made in repositories:
            for path in (*made.glob("dists/*"), *made.glob("pool/*")):
                (www / path.relative_to(made)).symlink_to(path)
        return lower

    def write_files(self, lower: dict[str, tuple[Path, ...]]) -> Path:
        layer_dir = self.instance.dir / "guest"
        guest.build_layer(layer_dir)
        (self.instance.dir / "cp").mkdir()
        keys = guest.make_keys(self.instance.dir)
        host_keys = {}
        for host in self.fleet.hosts:
            spec = self.specs[host.name]
            directory = self.instance.host_dir(host.name)
            directory.mkdir(parents=True)
            (directory / "console.log").touch()
            rails = [rail.netdev for rail in spec.rails] if spec else []
            base = lower[host.persona.name]
            host_keys[host.name] = guest.seed(self.instance, self.fleet, host, rails, base[-1], keys)
            record: dict[str, Any] = {
                "ports": [dataclasses.asdict(port) for port in cables(host, spec)],
                "lower": [str(path) for path in (layer_dir, *base)],
                "spec": spec.to_json() if spec else None,
            }
            (directory / "host.json").write_text(json.dumps(record), encoding="utf-8")
        return inventory.write_access(self.instance, self.fleet, keys, host_keys)

    def make_fabric(self) -> None:
        bridges = sorted({port.bridge for host in self.fleet.hosts
                          for port in cables(host, self.specs[host.name]) if port.rate_gbps is not None})
        fabric.create(self.instance, bridges, f"{self.fleet.fabric_address()}/{self.fleet.management.prefixlen}",
                      [host.name for host in self.fleet.hosts])

    def start_repository(self) -> None:
        where = self.instance.cgroup / REPOSITORY
        where.mkdir()
        with open(self.instance.dir / "repository.log", "ab") as log:
            subprocess.Popen(
                [sys.executable, "-m", "lab.repository.server", self.instance.fabric, self.fleet.fabric_address(),
                 str(self.instance.dir / "www")],
                cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=lambda: cgroup.enter(where))

    def start_hosts(self) -> None:
        for host in self.fleet.hosts:
            power_on(self.instance, host.name)

    def wait_for_ssh(self) -> None:
        missing = {host.name: self.fleet.management_address(host) for host in self.fleet.hosts}
        deadline = time.monotonic() + BOOT_SECONDS
        while missing:
            for name, address in list(missing.items()):
                if ssh_answers(self.instance, address):
                    del missing[name]
                elif not cgroup.populated(self.instance.host_cgroup(name)):
                    raise LabError(f"{name} did not start; {console_tail(self.instance, name)}")
            if missing and time.monotonic() > deadline:
                raise LabError(f"no SSH after {BOOT_SECONDS:.0f} s on {', '.join(missing)}; "
                               f"{console_tail(self.instance, next(iter(missing)))}")
            time.sleep(0.1)

    def wait_until_running(self) -> None:
        if not cgroup.populated(self.instance.cgroup / REPOSITORY):
            log = self.instance.dir / "repository.log"
            raise LabError(f"the package repository's server ended; {log}:\n{log.read_text(encoding='utf-8').strip()}")
        ask = ["systemctl", "is-system-running", "--wait"]
        waiting = {host.name: subprocess.Popen(inside(self.instance, host.name, ask), text=True,
                                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                   for host in self.fleet.hosts}
        for name, process in waiting.items():
            try:
                state = process.communicate(timeout=BOOT_SECONDS)[0].strip()
            except subprocess.TimeoutExpired:
                process.kill()
                state = f"still starting after {BOOT_SECONDS:.0f} s"
            if state != "running":
                ask = ["systemctl", "--failed", "--no-legend", "--plain"]
                failed = subprocess.run(inside(self.instance, name, ask), capture_output=True, text=True, check=False)
                raise LabError(f"{name} is {state}, wanted running\n{failed.stdout.strip()}")


def power_on(instance: Instance, host: str) -> None:
    """Start the process that boots ``host``; returns before the host runs."""
    outside = instance.host_cgroup(host) / "outside"
    outside.mkdir(parents=True, exist_ok=True)
    with open(instance.host_dir(host) / "console.log", "ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", "lab.supervisor", instance.name, host], cwd=ROOT,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            # Before exec, so that there is no moment at which `down` would miss it.
            preexec_fn=lambda: cgroup.enter(outside),
        )


def console_tail(instance: Instance, host: str) -> str:
    log = instance.host_dir(host) / "console.log"
    last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:]
    return "\n  ".join([f"the end of {log}:", *last])


def ssh_answers(instance: Instance, address: str) -> bool:
    with netns.entered(instance.fabric):
        probe = socket.socket()
    with probe:
        probe.settimeout(0.5)
        try:
            probe.connect((address, 22))
            return probe.recv(4) == b"SSH-"
        except OSError:
            return False


def init_pid(instance: Instance, host: str) -> int:
    """PID 1 of ``host`` as this machine numbers it. Raises LabError when the host is off."""
    try:
        pid = int((instance.host_dir(host) / "pid").read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        raise LabError(f"host {host} is off") from None
    if pid not in cgroup.pids(instance.host_cgroup(host)):
        raise LabError(f"host {host} is off")
    return pid


def inside(instance: Instance, host: str, argv: list[str]) -> list[str]:
    """The command line that runs ``argv`` as root in ``host``."""
    return [sys.executable, str(ROOT / "lab" / "enter.py"), str(init_pid(instance, host)),
            "/usr/bin/env", "-i", "HOME=/root", "LANG=C.UTF-8", "TERM=dumb", "SYSTEMD_DEVICE_VERIFY_SYSFS=0",
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", *argv]


def alive(instance: Instance) -> bool:
    """Whether every host of a finished ``up`` still has its PID 1 and its processes outside, and the mirror runs."""
    record = instance.read()
    if record.get("status") != "up":
        return False
    try:
        for host in record["hosts"]:
            init_pid(instance, host)
            settings = json.loads((instance.host_dir(host) / "host.json").read_text(encoding="utf-8"))
            if attendants.missing(instance, host, hardware=settings["spec"] is not None):
                return False
    except LabError:
        return False
    return cgroup.populated(instance.cgroup / REPOSITORY)


def up(instance: Instance, fleet: Fleet, directory: Path) -> None:
    with instance.lock("up"):
        if alive(instance) and instance.read()["fleet"] == str(fleet.source):
            say(f"{instance.name} is up already: {len(fleet.hosts)} hosts")
            return
        if instance.exists():
            say(f"removing what is left of {instance.name}")
            _down(instance)
        start, work = time.monotonic(), Up(instance, fleet, directory)
        try:
            work.check_machine()
        except LabError:
            _down(instance)
            raise
        work.run()
        say(f"up: {len(fleet.hosts)} hosts ({time.monotonic() - start:.1f} s)")


def down(instance: Instance) -> None:
    with instance.lock("down"):
        if not instance.exists():
            say(f"{instance.name} is not up")
            return
        with timed(f"{instance.name} removed"):
            _down(instance)


def _down(instance: Instance) -> None:
    """Remove everything that carries the instance's name, in an order that can be repeated."""
    record = instance.read()
    close_connections(instance.dir / "cp")
    if instance.cgroup.exists():
        cgroup.kill(instance.cgroup)
        cgroup.remove(instance.cgroup)
    fabric.disconnect(instance)
    if not record.get("netns_mounted", True):
        leave_netns_directory(instance)
    for cached in (image, layer, standin, repository):
        cached.sweep(instance.state / "cache")
    if "inventory" in record:
        Path(record["inventory"]).unlink(missing_ok=True)
    if instance.dir.exists():
        shutil.rmtree(instance.dir)
    with contextlib.suppress(OSError):
        instance.dir.parent.rmdir()


def leave_netns_directory(instance: Instance) -> None:
    """Undo the mount that the first namespace brought, or leave that to another lab that still runs."""
    for other in instance.dir.parent.glob("*"):
        if other != instance.dir:
            Instance(other.name).write(netns_mounted=False)
            return
    netns.unmount_directory()


def close_connections(sockets: Path) -> None:
    """End ssh's ControlPersist processes, which run on this machine and not in the lab's cgroup."""
    for path in sockets.glob("*") if sockets.is_dir() else ():
        subprocess.run(["ssh", "-O", "exit", "-o", f"ControlPath={path}", "lab"], check=False,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
