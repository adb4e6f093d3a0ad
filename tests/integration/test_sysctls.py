# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sysctls of a host: its own, with the kernel's manners, gone at a reboot; the kernel's where it has them apart."""
from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import lifecycle
from tests.integration.conftest import Lab, run_lab
from tests.lab_plugin import Labs

NAME = "sys"
FLEET = Path(__file__).parent / "fleets" / "pair.yml"
OWN = {"vm.nr_hugepages": "7", "kernel.numa_balancing": "2", "net.core.rmem_max": "67108864", "vm.swappiness": "61",
       "net.core.netdev_max_backlog": "250000", "net.ipv4.tcp_mem": "11\t12\t13", "fs.aio-max-nr": "3000000",
       "user.max_inotify_instances": "77", "kernel.core_pattern": "core.%p"}
PER_NAMESPACE = {"kernel.shmmax": "68719476736", "kernel.msgmax": "9000", "kernel.domainname": "lab.example",
                 "net.ipv4.conf.all.arp_ignore": "1", "net.ipv4.tcp_rmem": "4096\t131072\t6000000",
                 "fs.mqueue.msg_max": "12", "net.core.somaxconn": "5000"}


@pytest.fixture(scope="module")
def pair(labs: Labs) -> Iterator[Lab]:
    with labs.during(NAME, FLEET) as lab:
        yield lab


def run(lab: Lab, host: str, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(lifecycle.inside(lab.instance, host, list(argv)), capture_output=True, text=True,
                          check=False, timeout=20)


def read(lab: Lab, host: str, keys: dict[str, str]) -> dict[str, str]:
    done = run(lab, host, "sysctl", *keys)
    assert done.returncode == 0, done.stderr
    return dict(line.split(" = ", 1) for line in done.stdout.splitlines())


def machine(keys: dict[str, str]) -> dict[str, str]:
    return {key: Path("/proc/sys", *key.split(".")).read_text(encoding="ascii").strip() for key in keys}


@pytest.mark.parametrize("keys", [OWN, PER_NAMESPACE], ids=["machine-wide in the kernel", "per namespace"])
def test_set_read_back_and_seen_by_nobody_else(pair: Lab, keys: dict[str, str]) -> None:
    outside, other = machine(keys), read(pair, "login1", keys)
    before = read(pair, "one", keys)
    assert all(before[key] != value for key, value in keys.items()), "values that are there already say nothing"
    done = run(pair, "one", "sysctl", "-w", *(f"{key}={value}" for key, value in keys.items()))
    assert done.returncode == 0, done.stderr
    assert read(pair, "one", keys) == keys
    assert machine(keys) == outside
    assert read(pair, "login1", keys) == other


def test_a_host_starts_with_the_machines_values(pair: Lab) -> None:
    keys = dict.fromkeys(("vm.overcommit_ratio", "net.core.wmem_max", "kernel.panic", "net.ipv4.udp_mem"), "")
    assert read(pair, "login1", keys) == machine(keys)


# Each as the kernel answered on 6.18 for the real key.
@pytest.mark.parametrize(("script", "says"), [
    ("echo abc > /proc/sys/vm/swappiness", "Invalid argument"),
    ("echo 201 > /proc/sys/vm/swappiness", "Invalid argument"),
    ("echo -1 > /proc/sys/vm/swappiness", "Invalid argument"),
    ("echo 60x > /proc/sys/vm/swappiness", "Invalid argument"),
    ("echo > /proc/sys/vm/swappiness", "Invalid argument"),
    ("echo 99999999999 > /proc/sys/vm/max_map_count", "Invalid argument"),
    ("echo -1 > /proc/sys/vm/nr_hugepages", "Invalid argument"),
    ("echo 100 > /proc/sys/net/core/rmem_max", "Invalid argument"),
    ("echo 1 2 x > /proc/sys/net/ipv4/tcp_mem", "Invalid argument"),
    ("echo x > /proc/sys/net/ipv4/conf/all/arp_ignore", "Invalid argument"),
    ("echo nosuch > /proc/sys/net/core/default_qdisc", "No such file or directory"),
    ("echo x > /proc/sys/kernel/ostype", "Permission denied"),
    ("echo x > /proc/sys/kernel/random/boot_id", "Permission denied"),
    ("echo 1 > /proc/sys/vm/nosuch", "No such file or directory|nonexistent"),
    ("cat /proc/sys/vm/drop_caches", "Permission denied"),
    ("rm -f /proc/sys/vm/swappiness", "Permission denied"),
    ("mkdir /proc/sys/vm/x", "No such file or directory"),
    ("chmod 666 /proc/sys/vm/swappiness", "Operation not permitted"),
    ("setpriv --reuid 65534 sh -c 'echo 1 > /proc/sys/vm/swappiness'", "Permission denied"),
])
def test_refused_as_by_the_kernel(pair: Lab, script: str, says: str) -> None:
    before = read(pair, "login1", {"vm.swappiness": ""})
    done = run(pair, "login1", "bash", "-c", script)
    assert done.returncode != 0 and any(part in done.stderr for part in says.split("|")), done.stderr
    assert read(pair, "login1", {"vm.swappiness": ""}) == before


def test_triggers_and_numbers_too_many(pair: Lab) -> None:
    script = ("echo 3 > /proc/sys/vm/drop_caches && echo '30 40' > /proc/sys/vm/swappiness && "
              "cat /proc/sys/vm/swappiness && echo 1 > /proc/sys/vm/dirty_bytes && cat /proc/sys/vm/dirty_ratio")
    done = run(pair, "login1", "bash", "-c", script)
    assert (done.stdout, done.stderr) == ("30\n0\n", "")


def test_the_hosts_own_sysctl_files_at_boot_and_loss_of_the_rest(pair: Lab) -> None:
    outside = machine({**OWN, "kernel.panic": ""})
    run(pair, "one", "sysctl", "-w", "vm.overcommit_ratio=33")
    boot_id = read(pair, "one", {"kernel.random.boot_id": ""})
    run(pair, "one", "sh", "-c", "echo kernel.panic=17 > /etc/sysctl.d/60-site.conf")
    run_lab("reboot", "one", name=NAME)
    wanted = {**machine({"vm.overcommit_ratio": ""}), "kernel.panic": "17"}
    assert wanted["vm.overcommit_ratio"] != "33"
    assert read(pair, "one", wanted) == wanted
    assert read(pair, "one", {"kernel.random.boot_id": ""}) != boot_id
    assert run(pair, "one", "systemctl", "is-active", "systemd-sysctl").stdout == "active\n"
    assert run(pair, "one", "systemctl", "is-system-running").stdout == "running\n"
    assert machine({**OWN, "kernel.panic": ""}) == outside


def guards(lab: Lab, host: str) -> list[int]:
    procs = (lab.instance.host_cgroup(host) / "outside/cgroup.procs").read_text(encoding="ascii").split()
    return [int(pid) for pid in procs if Path(f"/proc/{pid}/comm").read_text(encoding="ascii") == "lab-guard\n"]


def test_a_dead_guard_hangs_nobody_and_opens_nothing(pair: Lab) -> None:
    """Last: the host is without sysctls afterwards."""
    found = guards(pair, "login1")
    assert len(found) == 1
    os.kill(found[0], signal.SIGKILL)
    time.sleep(0.1)
    start = time.monotonic()
    assert "not connected" in run(pair, "login1", "cat", "/proc/sys/vm/swappiness").stderr
    fresh = run(pair, "login1", "systemd-run", "--quiet", "--pipe", "--wait", "mount", "-t", "tmpfs", "t", "/mnt")
    assert fresh.returncode != 0
    assert time.monotonic() - start < 5
    assert run(pair, "login1", "true").returncode == 0
