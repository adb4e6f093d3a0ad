# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A few hosts just good enough for the stand-in's own test: no init, no SSH, no FUSE.

Each host is a network namespace and a hostname over one shared root (an overlay of the image in a mount and
PID namespace of its own). mpirun's "remote shell" is a script that enters them. Each rail is a bridge with a
token bucket towards every port; the HCAs are plain files bound over /sys/class/infiniband.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

RATE = "40mbit"  # 400 Gbit/s at the lab's scale of 1:10,000
RATE_GBYTES = 0.005
MTU = "4200"
HUNG = -1
# The agent must be root to enter a host; the program itself has no capability at all.
BARE = ("setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all")

KEEPER = r"""
set -eu
cd "$1"; lower=$2
mount -t tmpfs -o mode=755 layer layer
mkdir layer/upper layer/work layer/root
mount -t overlay -o "lowerdir=$lower,upperdir=$1/layer/upper,workdir=$1/layer/work" layer layer/root
root=$1/layer/root
mkdir -p "$root/run/netns" "$root/run/aidc-lab" "$root/hosts" "$root/standin" "$root/sys/class/infiniband" \
    "$root/sys/devices" "$root/dev/shm" "$root/dev/pts"
mount -t proc proc "$root/proc"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -sf pts/ptmx "$root/dev/ptmx"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
for device in null zero full random urandom; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mount --bind /sys/devices "$root/sys/devices"
mount --rbind /run/netns "$root/run/netns"
mount --bind "$1/hosts" "$root/hosts"
mount --bind "$3" "$root/standin"
cp etc-hosts "$root/etc/hosts"
install -m 755 enter "$root/enter"
chmod 1777 "$root/tmp"
touch ready
sleep infinity &
wait  # a shell as PID 1 also reaps what the runs leave
"""

# Called as ssh would be: enter HOST COMMAND...
ENTER = r"""#!/bin/sh
host=$1; shift
exec nsenter --net=/run/netns/@PREFIX@$host unshare --mount --uts sh -c '
    hostname "$0"
    mount --bind "/hosts/$0/infiniband" /sys/class/infiniband
    mount --bind "/hosts/$0/run" /run/aidc-lab
    exec sh -c "$*"' "$host" "$@"
"""


@dataclass
class Run:
    code: int
    out: str
    seconds: float

    def rows(self) -> list[list[str]]:
        return [line.split() for line in self.out.splitlines() if line[:12].strip().isdigit() and " float " in line]

    def busbw(self) -> list[float]:
        """Out-of-place and in-place, each row's."""
        return [float(row[at]) for row in self.rows() for at in (7, 11)]


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


class Hosts:
    def __init__(self, work: Path, lower: str, standin: Path, nodes: int = 3, rails: int = 2) -> None:
        self.work, self.lower, self.standin, self.rails = work, lower, standin, rails
        self.prefix = f"ringtest-{os.getpid()}-"
        self.fabric = self.prefix + "fab"
        self.names = [f"h{i + 1}" for i in range(nodes)]
        self.keeper: subprocess.Popen[bytes] | None = None

    def ns(self, host: str) -> str:
        return self.prefix + host

    def _link(self, host: str, device: str, bridge: str, address: str) -> None:
        port, mtu = f"{host}{bridge}", "1500" if device == "eth0" else MTU
        ip("-n", self.fabric, "link", "add", "name", port, "mtu", mtu, "type", "veth", "peer", "name", device,
           "mtu", mtu, "netns", self.ns(host))
        ip("-n", self.fabric, "link", "set", port, "master", bridge, "up")
        ip("-n", self.ns(host), "addr", "add", address, "dev", device)
        ip("-n", self.ns(host), "link", "set", device, "up")

    def _network(self) -> None:
        ip("netns", "add", self.fabric)
        for bridge in ("m0", *(f"r{c}" for c in range(self.rails))):
            ip("-n", self.fabric, "link", "add", "name", bridge, "type", "bridge")
            ip("-n", self.fabric, "link", "set", bridge, "up")
        for number, host in enumerate(self.names, 1):
            ip("netns", "add", self.ns(host))
            ip("-n", self.ns(host), "link", "set", "lo", "up")
            self._link(host, "eth0", "m0", f"10.99.0.{number}/24")
            for c in range(self.rails):
                self._link(host, f"ens{c}np0", f"r{c}", f"10.99.{c + 1}.{number}/24")
                self.shape(host, c, RATE)

    def shape(self, host: str, rail: int, rate: str) -> None:
        """What the fabric lets through towards ``host`` on one rail."""
        subprocess.run(["tc", "-n", self.fabric, "qdisc", "replace", "dev", f"{host}r{rail}", "root", "tbf",
                        "rate", rate, "burst", "32k", "latency", "100ms"], check=True, capture_output=True)

    def _files(self) -> None:
        for number, host in enumerate(self.names, 1):
            (self.work / "hosts" / host / "run").mkdir(parents=True)
            for c in range(self.rails):
                port = self.work / "hosts" / host / "infiniband" / f"mlx5_{c}" / "ports" / "1"
                for name in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
                    (port / name).mkdir(parents=True)
                (port / "state").write_text("4: ACTIVE\n")
                (port / "link_layer").write_text("Ethernet\n")
                local, mapped = f"fe80:0000:0000:0000:0000:00ff:fe00:00{number:02x}", \
                    f"0000:0000:0000:0000:0000:ffff:0a63:{c + 1:02x}{number:02x}"
                for index, gid in enumerate((local, local, mapped, mapped)):
                    (port / "gids" / str(index)).write_text(gid + "\n")
                    (port / "gid_attrs/types" / str(index)).write_text("RoCE v2\n" if index % 2 else "IB/RoCE v1\n")
                    (port / "gid_attrs/ndevs" / str(index)).write_text(f"ens{c}np0\n")
        (self.work / "layer").mkdir()
        (self.work / "etc-hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"10.99.0.{number} {host}\n" for number, host in enumerate(self.names, 1)))
        (self.work / "enter").write_text(ENTER.replace("@PREFIX@", self.prefix))

    def up(self) -> None:
        self._files()
        self._network()
        self.keeper = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child=SIGKILL",
             "sh", "-c", KEEPER, "keeper", str(self.work), self.lower, str(self.standin)])
        while not (self.work / "ready").exists():
            if self.keeper.poll() is not None:
                raise RuntimeError("the hosts' root did not come up")
            time.sleep(0.05)

    def down(self) -> None:
        if self.keeper:
            self.keeper.kill()
            self.keeper.wait()
        for host in (*self.names, "fab"):
            subprocess.run(["ip", "netns", "del", self.ns(host)], check=False, capture_output=True)
        shutil.rmtree(self.work / "hosts", ignore_errors=True)

    def _inside(self) -> int:
        """The keeper's process in its namespaces: unshare's only child."""
        assert self.keeper
        children = Path(f"/proc/{self.keeper.pid}/task/{self.keeper.pid}/children").read_text().split()
        return int(children[0])

    def start(self, arguments: Sequence[str], hosts: Sequence[str] | None = None, program: str = "all_reduce_perf",
              **env: str) -> subprocess.Popen[str]:
        hosts = hosts or self.names
        exports = [word for name, value in env.items() for word in ("-x", f"{name}={value}")]
        mpirun = ["mpirun", "--allow-run-as-root", "--prtemca", "plm_ssh_agent", "/enter",
                  "--prtemca", "prte_if_include", "eth0",
                  "--mca", "btl", "tcp,self", "--mca", "pml", "ob1", "--mca", "btl_tcp_if_include", "eth0",
                  "--bind-to", "none", "--host", ",".join(f"{host}:1" for host in hosts), *exports, *BARE,
                  f"/standin/bin/{program}", *arguments]
        root = self.work / "layer" / "root"
        return subprocess.Popen(
            ["nsenter", "--mount", "--pid", "-t", str(self._inside()), "chroot", str(root), "/enter", hosts[0],
             *mpirun], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LC_ALL": "C"})

    def _kill_run(self) -> None:
        for host in self.names:
            for pid in ip("netns", "pids", self.ns(host)).split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)

    def finish(self, process: subprocess.Popen[str], start: float, seconds: float = 40) -> Run:
        """Its end, or HUNG after ``seconds``."""
        try:
            out, _none = process.communicate(timeout=seconds)
            code = process.returncode
        except subprocess.TimeoutExpired:
            self._kill_run()
            out, _none = process.communicate()
            code = HUNG
        # The launcher's own words, when its child was faster than it: a race of prterun without effect.
        own = re.compile(r"^\[\w+:\d+\] plm:ssh: Warning: setpgid.*\n", re.MULTILINE)
        return Run(code, own.sub("", out), time.monotonic() - start)

    def run(self, arguments: Sequence[str], hosts: Sequence[str] | None = None, program: str = "all_reduce_perf",
            **env: str) -> Run:
        start = time.monotonic()
        return self.finish(self.start(arguments, hosts, program, **env), start)

    def ranks(self, host: str, program: str = "all_reduce_perf") -> list[int]:
        found = []
        for pid in ip("netns", "pids", self.ns(host)).split():
            try:
                if Path(f"/proc/{pid}/comm").read_text().strip() == program[:15]:
                    found.append(int(pid))
            except OSError:
                continue
        return found

    def signal_rank(self, host: str, number: signal.Signals, after: float = 0) -> int:
        """To the rank on ``host``, as soon as it is there and ``after`` seconds more."""
        deadline = time.monotonic() + 20
        while not (pids := self.ranks(host)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"no rank on {host}")
            time.sleep(0.02)
        time.sleep(after)
        os.kill(pids[0], number)
        return pids[0]

    def sent(self, host: str, rail: int) -> int:
        """Bytes that the kernel counted out of the host's port."""
        data = json.loads(ip("-n", self.ns(host), "-j", "-s", "link", "show", f"ens{rail}np0"))
        return int(data[0]["stats64"]["tx"]["bytes"])

    @contextmanager
    def corrupt(self, host: str, rank: int) -> Iterator[None]:
        file = self.work / "hosts" / host / "run" / "corrupt-rank"
        file.write_text(f"{rank}\n")
        yield
        file.unlink()
