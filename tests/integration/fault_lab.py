# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small lab whose hosts are broken on purpose, looked at by programs that are not ours."""
from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab import lifecycle
from lab.hardware import door
from lab.instance import Instance
from tests.integration.conftest import ROOT, lab_command

NAME = "flt"
FLEET = Path(__file__).parent / "fleets" / "faults.yml"
RAILS = {"one": ["enp3s0f0np0", "enP2p3s0f0np0", "enP16p3s0f0np0", "enP18p3s0f0np0"],
         "two": ["enp65s0f0np0", "enp193s0f0np0"]}
FUNCTIONS = {"one": "0000:03:00.0", "two": "0000:41:00.0"}
ADDRESS = {"one": "10.41.{}.1", "two": "10.41.{}.2"}
RECEIVE = """
import socket, time
listener = socket.create_server(("{address}", 7000))
print("ready", flush=True)
connection, start, size = listener.accept()[0], time.monotonic(), 0
while part := connection.recv(65536):
    size += len(part)
print(size * 8 / (time.monotonic() - start))
"""
SEND = 'import socket; socket.create_connection(("{address}", 7000), timeout=5).sendall(bytes(1500000))'
# Everything that a fault could leave changed, in the words of find, sha256sum and grep.
LISTING = """
find /sys/class/net /sys/class/infiniband /sys/class/infiniband_verbs /sys/bus/pci /dev/infiniband /sys/devices/pci* \
  '(' -name gids -o -name gid_attrs -o -name '*counters' -o -name statistics -o -name queues ')' -prune \
  -o -printf '%p %y %m %l\\n'
grep -hv '^\\(0000:\\)*0000$' /sys/class/infiniband/*/ports/1/gids/[0-9] | sed 's/^/gid /'
find /usr/bin/ibv_devinfo /usr/sbin/ip /usr/bin/ip /etc/systemd/network/ ! -type d -printf '%p %y %m %u %g %T@ %s %l\\n'
sha256sum /usr/bin/ibv_devinfo /usr/bin/ip /etc/systemd/network/*
cut -d ' ' -f 2-3 /proc/mounts | grep -v /run/credentials | sed 's/^/mount /'
grep -H . /sys/class/infiniband/*/ports/1/state /sys/class/net/*/mtu /sys/class/net/*/carrier
"""


class FaultLab:
    def __init__(self) -> None:
        self.instance = Instance(NAME)

    def lab(self, *argv: str, ok: bool = True) -> str:
        done = subprocess.run(lab_command(*argv, name=NAME), cwd=ROOT, capture_output=True, text=True, check=False,
                              timeout=90)
        assert (done.returncode == 0) is ok, f"lab {' '.join(argv)}: {done.returncode} {done.stdout}{done.stderr}"
        return (done.stdout + done.stderr).strip()

    def both(self, *argv: str) -> None:
        """A command for each host, at the same time."""
        running = [subprocess.Popen(lab_command(*argv, host, name=NAME), cwd=ROOT, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True) for host in RAILS]
        for process in running:
            text = process.communicate(timeout=90)[0]
            assert process.returncode == 0, text
        for host in RAILS:
            self.settled(host)

    def fault(self, *argv: str, ok: bool = True) -> str:
        return self.lab("fault", *argv, ok=ok)

    def run(self, host: str, *argv: str) -> subprocess.CompletedProcess[str]:
        """As `lab exec` does it, without a Python start of half a second."""
        return subprocess.run(lifecycle.inside(self.instance, host, list(argv)), capture_output=True, text=True,
                              check=False, timeout=30, errors="surrogateescape", stdin=subprocess.DEVNULL)

    def out(self, host: str, *argv: str) -> str:
        done = self.run(host, *argv)
        assert done.returncode == 0, f"{host}: {argv}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def read(self, host: str, path: str) -> str:
        return self.out(host, "cat", path)

    def ssh(self, host: str, command: str) -> subprocess.CompletedProcess[str]:
        config = str(self.instance.dir / "ssh_config")
        return subprocess.run(["ssh", "-F", config, "-o", "ControlPath=none", "-o", "ConnectTimeout=3", host, command],
                              capture_output=True, text=True, check=False, timeout=20, stdin=subprocess.DEVNULL)

    def ask(self, host: str, **request: Any) -> Any:
        return door.ask(self.instance.host_dir(host) / "door", request)

    def ping(self, host: str, other: str, rail: int = 0, size: int = 56) -> bool:
        """From ``host`` to ``other`` along a rail, not to be fragmented."""
        return self.run(host, "ping", "-c", "1", "-W", "1", "-M", "do", "-s", str(size), "-I", RAILS[host][rail],
                        ADDRESS[other].format(rail)).returncode == 0

    def fabric(self, *argv: str) -> Any:
        done = subprocess.run(["ip", "netns", "exec", self.instance.fabric, *argv], capture_output=True, text=True,
                              check=True)
        return json.loads(done.stdout)

    def mbps(self, sender: str, receiver: str, rail: int) -> float:
        """What a TCP connection gets along a rail."""
        address = ADDRESS[receiver].format(rail)
        server = subprocess.Popen(
            lifecycle.inside(self.instance, receiver, ["/usr/bin/python3", "-c", RECEIVE.format(address=address)]),
            stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None and server.stdout.readline() == "ready\n"
        self.out(sender, "/usr/bin/python3", "-c", SEND.format(address=address))
        return float(server.communicate(timeout=20)[0]) / 1e6

    def give_addresses(self, host: str) -> None:
        """By hand, into the files that provisioning left: what comes back after a fault has no role of ours in it."""
        for rail, interface in enumerate(RAILS[host]):
            lines = f"Address={ADDRESS[host].format(rail)}/24\\nConfigureWithoutCarrier=yes"
            file = f"/etc/systemd/network/20-{interface}.network"
            self.out(host, "sed", "-i", f"s!^IPv6AcceptRA=!{lines}\\n&!", file)
        self.out(host, "networkctl", "reload")

    def settled(self, host: str) -> None:
        """Until networkd has given each rail its address again."""
        assert until(lambda: all(ADDRESS[host].format(rail) in self.out(host, "ip", "-br", "addr")
                                 for rail in range(len(RAILS[host])))), self.out(host, "ip", "-br", "addr")
        assert until(lambda: "tentative" not in self.out(host, "ip", "addr"))

    def picture(self) -> dict[str, Any]:
        """The state of both hosts and of the fabric, without what a new link has new (index, the far end's MAC)."""
        shown: dict[str, Any] = {}
        for host in RAILS:
            shown[f"{host} listing"] = sorted(self.out(host, "sh", "-c", LISTING).splitlines())
            shown[f"{host} link"] = plain(json.loads(self.out(host, "ip", "-d", "-j", "link")))
            shown[f"{host} addr"] = plain(json.loads(self.out(host, "ip", "-j", "addr")))
        ports = plain(self.fabric("ip", "-d", "-j", "link"))
        shown["fabric link"] = {name: {key: port.get(key) for key in ("mtu", "operstate", "flags", "master")}
                                for name, port in ports.items()}
        shown["fabric qdisc"] = {entry["dev"]: (entry["kind"], entry["options"])
                                 for entry in self.fabric("tc", "-j", "qdisc", "show")}
        return shown


def plain(entries: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By interface name; lists of addresses in one order, numbers of the kernel's own left out."""
    dropped = ("ifindex", "link_index", "valid_life_time", "preferred_life_time")

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: strip(item) for key, item in value.items() if key not in dropped}
        if isinstance(value, list):
            return sorted((strip(item) for item in value), key=json.dumps)
        return value

    return {entry["ifname"]: strip(entry) for entry in entries}


def until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
