# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault of the table: its effect as other programs see it, and that clear leaves no trace."""
from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.faults import manage, table
from tests.integration.conftest import ROOT, Lab, lab_command, run_lab
from tests.integration.fault_lab import ADDRESS, FLEET, FUNCTIONS, NAME, RAILS, FaultLab, until

TESTED: set[str] = set()
NETWORK = "/etc/systemd/network"


@pytest.fixture(scope="module", name="lab")
def fixture_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultLab]:
    run_lab("down", name=NAME)
    inventory = tmp_path_factory.mktemp("inventory")
    run_lab("up", "--fleet", str(FLEET), "--inventory", str(inventory), name=NAME)
    lab = FaultLab()
    # The tools that are broken below; the hosts are bare.
    for playbook in (("playbooks/packages.yml",), ("playbooks/fabric.yml", "--tags", "rdma_stack")):
        done = Lab(lab.instance, inventory).play(*playbook)
        assert done.code == 0, done.text[-4000:]
    for host in RAILS:
        lab.give_addresses(host)
        lab.settled(host)
    yield lab
    run_lab("down", name=NAME)


@pytest.fixture(scope="module", name="before")
def fixture_before(lab: FaultLab) -> dict[str, Any]:
    return lab.picture()


@pytest.fixture(name="whole")
def fixture_whole(lab: FaultLab, before: dict[str, Any]) -> Iterator[FaultLab]:
    """After the test everything must be as it was before the first one."""
    yield lab
    assert manage.show(lab.instance) == ["no fault is set"]
    after = lab.picture()
    for key in before:
        if isinstance(before[key], list):
            assert set(before[key]) ^ set(after[key]) == set(), key
        assert after[key] == before[key], key


def set_fault(lab: FaultLab, name: str, target: str, *parameters: str) -> None:
    TESTED.add(name)
    assert lab.fault("set", name, target, *parameters).endswith(" is set")


def test_slow_rail(whole: FaultLab) -> None:
    assert 34 < whole.mbps("two", "one", 1) < 42
    set_fault(whole, "slow-rail", "one", "rail=1")
    assert 17 < whole.mbps("two", "one", 1) < 21
    assert 34 < whole.mbps("two", "one", 0) < 42, "the other rail is as fast as before"
    assert whole.fault("set", "slow-rail", "one", "rail=1").endswith(" is set already")
    assert whole.fault("show") == "slow-rail one rail=1 share=0.5"
    assert "rate of one-r1 is changed by slow-rail" in whole.fault("set", "slow-node", "one", ok=False)
    whole.fault("clear", "slow-rail", "one")
    assert 34 < whole.mbps("two", "one", 1) < 42


def test_slow_node(whole: FaultLab) -> None:
    set_fault(whole, "slow-node", "two")
    rates = [whole.mbps("one", "two", rail) for rail in range(2)]
    assert all(8 < rate < 10.6 for rate in rates), rates
    whole.fault("clear", "slow-node")


def test_leaf_mtu(whole: FaultLab) -> None:
    rails = [(host, RAILS[host][rail]) for host in RAILS for rail in (0, 1)]
    for host, interface in rails:
        whole.out(host, "ip", "link", "set", interface, "mtu", "4200")
    assert whole.ping("one", "two", 1, 4000)
    set_fault(whole, "leaf-mtu", "leaf1", "rail=1")
    assert [whole.ping("one", "two", 1, size) for size in (1400, 4000)] == [True, False]
    assert whole.ping("one", "two", 0, 4000), "the other rail has another switch"
    whole.fault("clear", "leaf-mtu", "leaf1")
    assert whole.ping("one", "two", 1, 4000)
    for host, interface in rails:
        whole.out(host, "ip", "link", "set", interface, "mtu", "1500")


def test_link_down(whole: FaultLab) -> None:
    interface = RAILS["one"][1]
    set_fault(whole, "link-down", "one", "rail=1")
    assert whole.read("one", f"/sys/class/net/{interface}/carrier") == "0"
    assert "NO-CARRIER" in whole.out("one", "ip", "link", "show", interface)
    assert whole.read("one", "/sys/class/infiniband/mlx5_1/ports/1/state") == "1: DOWN"
    assert not whole.ping("two", "one", 1) and whole.ping("two", "one", 0)
    whole.fault("clear")
    assert until(lambda: whole.ping("two", "one", 1))
    assert until(lambda: whole.read("one", f"/sys/class/net/{interface}/operstate") == "up")


def gone(lab: FaultLab) -> bool:
    """The first NIC of host one is nowhere."""
    looks = [lab.run("one", "ip", "link", "show", RAILS["one"][0]).returncode != 0,
             lab.out("one", "lspci", "-s", FUNCTIONS["one"]) == "",
             *(lab.run("one", "test", "-e", path).returncode != 0 for path in (
                 "/sys/class/infiniband/mlx5_0", f"/sys/bus/pci/devices/{FUNCTIONS['one']}", "/dev/infiniband/uverbs0",
                 f"/sys/devices/pci0000:00/0000:00:00.0/{FUNCTIONS['one']}", f"/sys/class/net/{RAILS['one'][0]}"))]
    assert len(set(looks)) == 1, f"half a device: {looks}"
    return looks[0]


def test_lost_nic(whole: FaultLab) -> None:
    assert not gone(whole)
    set_fault(whole, "lost-nic", "one")
    assert gone(whole) and not whole.ping("two", "one", 0) and whole.ping("two", "one", 1)
    whole.lab("driver-reload", "one")
    assert gone(whole), "a reload of the driver does not repair the NIC"
    assert "driver-reload one" in whole.fault("clear", "lost-nic", "one")
    assert gone(whole), "nobody has scanned the bus yet"
    whole.lab("driver-reload", "one")
    assert not gone(whole)
    whole.settled("one")
    assert until(lambda: whole.ping("two", "one", 0))


def test_hung_tool(whole: FaultLab) -> None:
    set_fault(whole, "hung-tool", "two")
    start = time.monotonic()
    assert whole.out("two", "sh", "-c", "timeout -k 0.5 0.5 ibv_devinfo; echo $?") == "137"
    assert time.monotonic() - start > 1
    whole.fault("clear")
    assert "mlx5_1" in whole.out("two", "ibv_devinfo")


def test_missing_tool(whole: FaultLab) -> None:
    set_fault(whole, "missing-tool", "one")
    assert whole.run("one", "sh", "-c", "command -v ibv_devinfo").returncode == 127
    assert whole.run("one", "ls", "/usr/bin/ibv_devinfo").returncode == 2
    assert "tool ibv_devinfo of one is changed by missing-tool" in whole.fault("set", "hung-tool", "one", ok=False)
    whole.fault("clear")


def test_lying_tool(whole: FaultLab) -> None:
    set_fault(whole, "lying-tool", "one", "tool=ip")
    assert whole.out("one", "ip", "link", "set", RAILS["one"][0], "mtu", "2000") == ""
    assert whole.read("one", f"/sys/class/net/{RAILS['one'][0]}/mtu") == "1500"
    whole.fault("clear")


def test_garbage_tool(whole: FaultLab) -> None:
    set_fault(whole, "garbage-tool", "one", "tool=ip")
    done = whole.run("one", "ip", "-j", "link")
    assert done.returncode == 0 and "\udcff" in done.stdout and "{{" in done.stdout
    whole.fault("clear")


def test_full_disk(whole: FaultLab) -> None:
    names = whole.out("one", "ls", NETWORK)
    set_fault(whole, "full-disk", "one")
    assert whole.out("one", "ls", NETWORK) == names
    done = whole.run("one", "cp", "/etc/services", f"{NETWORK}/50-x.conf")
    assert done.returncode == 1 and "No space left on device" in done.stderr
    done = whole.run("one", "/usr/bin/python3", "-c", f"open('{NETWORK}/50-y.conf', 'w').write('x' * 5000)")
    assert "OSError: [Errno 28]" in done.stderr
    whole.out("one", "cp", "/etc/services", "/etc/elsewhere")
    whole.out("one", "rm", f"{NETWORK}/50-y.conf", "/etc/elsewhere")
    whole.fault("clear")
    # As on a real disk: the file that the failed write left is there, the removed one is not.
    assert whole.out("one", "stat", "-c", "%s", f"{NETWORK}/50-x.conf") in ("0", "4096")
    assert whole.run("one", "ls", f"{NETWORK}/50-y.conf").returncode == 2
    whole.out("one", "cp", "/etc/services", f"{NETWORK}/50-x.conf")
    whole.out("one", "rm", f"{NETWORK}/50-x.conf")


def test_host_down(whole: FaultLab) -> None:
    boot = whole.read("two", "/proc/sys/kernel/random/boot_id")
    set_fault(whole, "host-down", "two")
    assert not whole.ping("one", "two") and whole.run("one", "ping", "-c1", "-W1", "10.79.0.2").returncode != 0
    assert whole.ssh("two", "true").returncode == 255
    ports = {port["ifname"] for port in whole.fabric("ip", "-j", "link")}
    assert "one-r0" in ports and not {"two", "two-r0", "two-r1"} & ports, "a host without power gives carrier"
    assert "host two is off, and a boot ends" in whole.fault("set", "hung-tool", "two", ok=False)
    assert whole.fault("set", "missing-tool", "two").endswith("will be set at the next boot")
    assert "two runs" in whole.fault("clear", "host-down", "two")
    assert whole.read("two", "/proc/sys/kernel/random/boot_id") != boot
    assert whole.run("two", "ls", "/usr/bin/ibv_devinfo").returncode == 2
    whole.fault("clear")
    whole.settled("two")


def test_host_dies(whole: FaultLab) -> None:
    set_fault(whole, "host-dies", "two", "process=sleep", "delay=0.5")
    done = whole.ssh("two", "echo before; sleep 10; echo after")
    assert (done.returncode, done.stdout) == (255, "before\n")
    assert until(lambda: "(has struck)" in manage.show(whole.instance)[0]) and not whole.ping("one", "two")
    assert "two runs" in whole.fault("clear", "host-dies", "two")
    set_fault(whole, "host-dies", "two", "logins=2")
    assert whole.ssh("two", "sleep 0.3; echo alive").stdout == "alive\n"
    assert whole.ssh("two", "sleep 3; echo alive").returncode == 255
    whole.fault("clear")
    set_fault(whole, "host-dies", "two", "process=sleep")
    whole.fault("clear")
    assert whole.ssh("two", "sleep 0.3; echo alive").stdout == "alive\n", "disarmed"
    whole.settled("two")


def test_what_survives_a_reboot(whole: FaultLab) -> None:
    for argv in (("slow-rail", "one", "rail=1"), ("lost-nic", "one"), ("link-down", "one", "rail=2"),
                 ("missing-tool", "one"), ("full-disk", "one"), ("hung-tool", "one", "tool=sleep"),
                 ("leaf-mtu", "leaf1", "rail=1")):
        manage.set_fault(whole.instance, table.load(), argv[0], argv[1], list(argv[2:]))
    assert whole.out("one", "sh", "-c", "timeout -k 0.2 0.2 sleep 0; echo $?") == "137"
    whole.lab("reboot", "one")
    assert 17 < whole.mbps("two", "one", 1) < 21
    assert gone(whole) and whole.read("one", f"/sys/class/net/{RAILS['one'][2]}/carrier") == "0"
    assert whole.run("one", "ls", "/usr/bin/ibv_devinfo").returncode == 2
    assert "No space left" in whole.run("one", "cp", "/etc/services", NETWORK).stderr
    assert {port["ifname"]: port["mtu"] for port in whole.fabric("ip", "-j", "link")}["one-r1"] == 1500
    whole.out("one", "rm", f"{NETWORK}/services")
    assert whole.run("one", "timeout", "-k", "1", "1", "sleep", "0").returncode == 0, "a reboot heals a hung tool"
    assert "hung-tool" not in whole.fault("show") and "slow-rail one rail=1" in whole.fault("show")
    whole.fault("clear")
    whole.lab("reboot", "--cold", "one")
    assert not gone(whole), "cleared and booted, the NIC is back"
    whole.settled("one")


def test_a_killed_command_is_finished_by_the_next(whole: FaultLab) -> None:
    for seconds in (0.12, 0.18, 0.24, 0.32):
        for word, full in (("set", True), ("clear", False)):
            argv = (word, "full-disk", "one")
            process = subprocess.Popen(lab_command("fault", *argv, name=NAME), cwd=ROOT, stdout=subprocess.DEVNULL)
            time.sleep(seconds)
            process.send_signal(signal.SIGKILL)
            process.wait()
            whole.fault(*argv)
            done = whole.run("one", "cp", "/etc/services", f"{NETWORK}/x")
            assert (done.returncode != 0) is full, f"{argv} after {seconds} s: {done.stderr}"
            whole.out("one", "rm", f"{NETWORK}/x")


def test_a_new_row_needs_no_code(whole: FaultLab, tmp_path: Path) -> None:
    rows = tmp_path / "table.yml"
    rows.write_text("""
stray-cable:
  text: A rail's cable ends in another switch.
  fact: test
  target: rail
  survives_reboot: true
  touches: bridge of {port}
  steps:
    - fabric: {set: "ip link set {port} nomaster", clear: "ip link set {port} master {bridge}"}
    - host: {set: "touch /etc/stray-{rail}", clear: "rm -f /etc/stray-{rail}"}
""", encoding="utf-8")
    whole.fault("--table", str(rows), "set", "stray-cable", "one", "rail=1")
    assert whole.read("one", f"/sys/class/net/{RAILS['one'][1]}/carrier") == "1"
    assert not whole.ping("one", "two", 1) and whole.run("one", "ls", "/etc/stray-1").returncode == 0
    # The record knows its row: no table is needed any more.
    whole.fault("clear", "stray-cable", "one")
    assert until(lambda: whole.ping("one", "two", 1)) and whole.run("one", "ls", "/etc/stray-1").returncode == 2


# mlx5-roce 4.8 and 5.5: what is left of MTU, driver's memory, PCI register, port register, and whether the
# next-boot parameter was loaded. Host one has BMC-powered NICs, host two has not.
KEPT = {
    ("driver-reload",): {"one": (False, False, True, True, False), "two": (False, False, True, True, False)},
    ("reboot",): {"one": (False, False, False, True, False), "two": (False, False, False, False, True)},
    ("driver-reload", "--firmware-reset"): {"one": (False, False, False, False, True),
                                            "two": (False, False, False, False, True)},
    ("reboot", "--cold"): {"one": (False, False, False, False, True), "two": (False, False, False, False, True)},
}


def look(lab: FaultLab, host: str) -> tuple[bool, ...]:
    interface, port = RAILS[host][1], "/sys/class/infiniband/mlx5_1/ports/1"
    return (lab.read(host, f"/sys/class/net/{interface}/mtu") == "4200",
            lab.read(host, f"{port}/hw_counters/lifespan") == "20",
            "MaxReadReq 4096 bytes" in lab.out(host, "lspci", "-vv", "-s", FUNCTIONS[host]),
            lab.ask(host, do="show")[1]["registers"]["QPTS"] == "dscp",
            "mlx5_0" not in lab.out(host, "ls", "/sys/class/infiniband").split())


@pytest.mark.parametrize("event", KEPT, ids=" ".join)
def test_what_is_lost_when(whole: FaultLab, event: tuple[str, ...]) -> None:
    links = {}
    for host, rails in RAILS.items():
        assert look(whole, host) == (False,) * 5
        whole.out(host, "ip", "link", "set", rails[1], "mtu", "4200")
        whole.out(host, "sh", "-c", "echo 20 > /sys/class/infiniband/mlx5_1/ports/1/hw_counters/lifespan")
        whole.out(host, "setpci", "-s", FUNCTIONS[host], "CAP_EXP+08.w=5000:F000")
        whole.ask(host, do="register", rail=1, name="QPTS", value="dscp")
        whole.ask(host, do="parameter", rail=0, name="ROCE_CONTROL", value="1")
        assert look(whole, host) == (True, True, True, True, False)
        links[host] = whole.out(host, "ip", "-o", "link", "show", rails[1]).split(":")[0]
    whole.both(*event)
    for host, rails in RAILS.items():
        assert look(whole, host) == KEPT[event][host]
        # The netdev is a new one with its addresses from networkd's files, so the GIDs are built anew.
        assert links[host] != whole.out(host, "ip", "-o", "link", "show", rails[1]).split(":")[0]
        address = "".join(f"{int(part):02x}" for part in ADDRESS[host].format(1).split("."))
        gids = whole.out(host, "sh", "-c", "cat /sys/class/infiniband/mlx5_1/ports/1/gids/[0-9]")
        assert f"ffff:{address[:4]}:{address[4:]}" in gids
        whole.ask(host, do="parameter", rail=0, name="ROCE_CONTROL", value="0")
    whole.both("driver-reload", "--firmware-reset")


def test_down_with_faults_set_leaves_nothing(lab: FaultLab) -> None:
    for argv in (("host-dies", "one"), ("full-disk", "two"), ("hung-tool", "two"), ("lost-nic", "two")):
        lab.fault("set", *argv)
    watcher = f"lab.faults.watch\0{NAME}\0one\0".encode()

    def watchers() -> int:
        found = 0
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                found += watcher in entry.read_bytes()
        return found

    assert watchers() == 1
    run_lab("down", name=NAME)
    assert watchers() == 0 and not lab.instance.exists()
    assert f"instances/{NAME}" not in Path("/proc/self/mounts").read_text(encoding="utf-8")


def test_every_fault_of_the_table_was_tested() -> None:
    assert set(table.load()) == TESTED
