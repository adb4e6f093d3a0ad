# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot, a reload, an ifdown and a flap leave on a host of each network manager, without Ansible; and rollback.

All is read by tools that are not ours. The hardware model counts the writes of PFC, each of which could stop a link.
"""
from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.hardware import door
from tests.lab_plugin import Lab, Labs, Play, run_lab

# Minutes: `make full` runs these.
pytestmark = pytest.mark.slow

NAME, FLEET = "boot", "tests/integration/fleets/boot.yml"
OWNERS = {"bdeb": "networkd", "bubu": "netplan", "brhel": "networkmanager"}
HOSTS = sorted(OWNERS)
# lab/hardware/shapes/l40s.yml
RAILS, PCIS = ["enp65s0f0np0", "enp193s0f0np0"], ["0000:41:00.0", "0000:c1:00.0"]
TOOL, INTENT = "/usr/libexec/aidc/aidc-fabric.pyz", "/etc/aidc/intent.json"
GOOD = "/etc/aidc/intent.good.json"
BOOT, GID = "aidc.gpu_cluster.fabric_boot", "aidc.gpu_cluster.roce_gid"
# Ten seconds, and more where other work takes the two cores.
SECONDS = 10.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
PLAY = """\
- hosts: all
  gather_facts: false
  roles:
    - role: aidc.gpu_cluster.rdma_stack
    - role: aidc.gpu_cluster.rail_network
    - role: aidc.gpu_cluster.mlx5_port
    - role: aidc.gpu_cluster.roce_qos
    - role: aidc.gpu_cluster.roce_gid
    - role: aidc.gpu_cluster.fabric_boot
"""
# The state of all rails by the kernel's files, iproute2, ethtool and pciutils. ubuntu's ethtool knows no emulated port.
READ = """\
import json, os, subprocess, sys
def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True).stdout
def text(path):
    try:
        return open(path).read().strip()
    except OSError:
        return None
found = {}
for number, (rail, pci) in enumerate(zip(sys.argv[1].split(","), sys.argv[2].split(","))):
    link = next((one for one in json.loads(run("ip", "-j", "addr", "show") or "[]") if one["ifname"] == rail), {})
    base = f"/sys/class/infiniband/mlx5_{number}/ports/1"
    gids = [text(f"{base}/gids/{index}") for index in range(12)]
    folder = f"/sys/kernel/config/rdma_cm/mlx5_{number}"
    try:
        os.mkdir(folder)
    except OSError:
        pass
    found[rail] = {
        "mtu": link.get("mtu"),
        "addresses": [entry["local"] for entry in link.get("addr_info", []) if entry["family"] == "inet"],
        "gids": sorted(gid for index, gid in enumerate(gids) if gid and ":ffff:" in gid
                       and text(f"{base}/gid_attrs/types/{index}") == "RoCE v2"),
        "rate": text(f"{base}/state"),
        **{kind: json.loads(run("dcb", "-j", kind, "show", "dev", rail).strip() or "{}")
           for kind in ("pfc", "ets", "app")},
        "cm_tos": text(f"{folder}/ports/1/default_roce_tos"),
        "read_request": run("setpci", "-s", pci, "CAP_EXP+08.w"),
        "pause": [line.split() for line in run("ethtool", "-a", rail).splitlines() if line[:3] in ("RX:", "TX:")],
        "sysctls": [text(f"/proc/sys/net/ipv4/conf/{rail}/{key}")
                    for key in ("arp_ignore", "arp_announce", "rp_filter")],
    }
    try:
        os.rmdir(folder)
    except OSError:
        pass
print(json.dumps(found))
"""


def state(lab: Lab, host: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.inside(host, "python3", "-c", READ, ",".join(RAILS), ",".join(PCIS)).stdout)
    return found


def pfc_writes(lab: Lab, host: str) -> list[int]:
    return [rail["pfc_writes"] for rail in door.ask(lab.instance.host_dir(host) / "door", {"do": "show"})]


def journal(lab: Lab, host: str) -> str:
    return lab.inside(host, "journalctl", "-b", "-t", "aidc-fabric", "-o", "cat", "--no-pager").stdout


def tool(lab: Lab, host: str, *argv: str) -> subprocess.CompletedProcess[str]:
    return lab.inside(host, TOOL, *argv, check=False)


def back(read: Callable[[], Any], wanted: Any) -> float:
    """Seconds until the state is as wanted."""
    start = time.monotonic()
    while True:
        try:
            found = read()
        except (AssertionError, ValueError):
            found = None  # the host is on its way
        took = time.monotonic() - start
        if found == wanted:
            return took
        assert took < SECONDS, f"after {took:.1f} s: {found}"
        time.sleep(0.2)


class Boot:
    """The configured lab, and how its rails were then."""

    def __init__(self, lab: Lab, play: Path) -> None:
        self.lab, self.file = lab, play
        self.wanted: dict[str, dict[str, Any]] = {}

    def play(self, *argv: str, **variables: Any) -> Play:
        more = ["-e", json.dumps(variables)] if variables else []
        return self.lab.play(str(self.file), *argv, *more)

    def done(self, *argv: str, **variables: Any) -> Play:
        play = self.play(*argv, **variables)
        assert play.code == 0, play.text[-4000:]
        return play

    def is_back(self, host: str) -> float:
        took = back(lambda: state(self.lab, host), self.wanted[host])
        # The tool waits for the end of the settled state, too.
        back(lambda: (tool(self.lab, host, "--check").returncode,
                      self.lab.inside(host, "systemctl", "--failed", "--no-legend").stdout), (0, ""))
        print(f"{host} ({OWNERS[host]}): back after {took:.1f} s")
        return took


@pytest.fixture(scope="module")
def boot(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Boot]:
    play = tmp_path_factory.mktemp("boot") / "play.yml"
    play.write_text(PLAY, encoding="utf-8")
    with labs.during(NAME, FLEET) as lab:
        assert lab.play("playbooks/packages.yml").code == 0
        made = Boot(lab, play)
        first = made.done()
        assert first.hosts() == HOSTS
        assert {host: result["drift"] for host, result in first.results(BOOT).items()} == dict.fromkeys(HOSTS, [])
        for host in HOSTS:
            made.wanted[host] = state(lab, host)
            for rail in made.wanted[host].values():
                assert (rail["mtu"], len(rail["gids"]), rail["cm_tos"], rail["sysctls"]) == (
                    4200, 1, "104", ["1", "2", "2"])
                assert rail["pfc"]["prio_pfc"] == [priority == 3 for priority in range(8)]
                assert len(rail["app"]["dscp_prio"]) == 64 and rail["read_request"] == "5830\n"
        yield made


def test_a_second_run_changes_nothing_and_check_mode_agrees(boot: Boot) -> None:
    again = boot.done()
    assert again.changed() == {}
    assert boot.done("--check").changed() == {}
    kept = json.loads((boot.lab.inventory / ".state/fabric_boot/bdeb.json").read_text(encoding="utf-8"))["data"]
    assert (kept["enabled"], kept["drift"]) == (True, []) and kept["intent_time"]
    sections = json.loads(boot.lab.inside("bdeb", "cat", INTENT).stdout)["sections"]
    assert sorted(sections) == ["mlx5_port", "rail_network", "roce_gid", "roce_qos"]


def test_by_hand_nothing_differs_and_nothing_is_written(boot: Boot) -> None:
    for host in HOSTS:
        before, link = pfc_writes(boot.lab, host), boot.lab.inside(host, "stat", "-c", "%Y", INTENT).stdout
        done = tool(boot.lab, host, "apply")
        assert (done.returncode, len(done.stdout.splitlines())) == (0, 1) and "nothing differs" in done.stdout
        assert pfc_writes(boot.lab, host) == before
        assert boot.lab.inside(host, "stat", "-c", "%Y", INTENT).stdout == link


@pytest.mark.parametrize("how", [["reboot"], ["reboot", "--cold"]], ids=["warm", "cold"])
@pytest.mark.parametrize("host", HOSTS)
def test_after_a_reboot_all_is_back(boot: Boot, host: str, how: list[str]) -> None:
    run_lab(*how, host, name=NAME)
    boot.is_back(host)
    said = journal(boot.lab, host)
    assert "roce_qos: dcb ets set" in said and "default_roce_tos 104" in said
    assert "roce_qos: dcb pfc set" in said, "this class's board does not keep its ports' registers"
    # Once for each rail, whoever was first: the unit of the boot or those of the devices.
    assert pfc_writes(boot.lab, host) == [1, 1] and said.count("dcb pfc set") == 2
    assert "nothing differs" in said


@pytest.mark.parametrize("host", HOSTS)
def test_after_a_reload_of_the_driver_all_is_back(boot: Boot, host: str) -> None:
    before = pfc_writes(boot.lab, host)
    run_lab("driver-reload", host, name=NAME)
    boot.is_back(host)
    said = journal(boot.lab, host)
    assert any(f"udev:{rail}: roce_qos: dcb ets set" in said for rail in RAILS)
    # PFC is a register of the port, which the reload has left: no link is stopped for nothing.
    assert pfc_writes(boot.lab, host) == before
    units = boot.lab.inside(host, "systemctl", "show", "-p", "Result", *(f"aidc-fabric@{rail}" for rail in RAILS))
    assert units.stdout.split() == ["Result=success"] * 2


DOWN_UP = {
    "networkd": ("networkctl down {0}", "networkctl up {0}"), "netplan": ("networkctl down {0}", "networkctl up {0}"),
    "networkmanager": ("nmcli -w 20 device disconnect {0}", "nmcli -w 20 device connect {0}"),
}


@pytest.mark.parametrize("host", HOSTS)
def test_after_ifdown_and_ifup_by_the_manager_all_is_back(boot: Boot, host: str) -> None:
    before = pfc_writes(boot.lab, host)
    down, up = DOWN_UP[OWNERS[host]]
    for rail in RAILS:
        boot.lab.inside(host, "sh", "-c", down.format(rail))
    assert state(boot.lab, host) != boot.wanted[host]
    told = tool(boot.lab, host, "--check")
    assert told.returncode == 2 and "differs: rail_network" in told.stdout, told.stdout
    for rail in RAILS:
        boot.lab.inside(host, "sh", "-c", up.format(rail))
    boot.is_back(host)
    assert pfc_writes(boot.lab, host) == before


def ports(lab: Lab, host: str, numbers: tuple[int, ...], how: str) -> None:
    """The switch's side of rails."""
    for number in numbers:
        subprocess.run(["ip", "-n", lab.instance.fabric, "link", "set", f"{host}-r{number}", how], check=True)


def flap(lab: Lab, host: str, seconds: float, numbers: tuple[int, ...] = (0, 1)) -> dict[str, Any]:
    """The carrier away and back; the state just before it comes back."""
    ports(lab, host, numbers, "down")
    try:
        time.sleep(seconds)
        return state(lab, host)
    finally:
        ports(lab, host, numbers, "up")


@pytest.mark.parametrize("seconds", [1, 10])
@pytest.mark.parametrize("host", HOSTS)
def test_a_flap_of_the_carrier_costs_nothing(boot: Boot, host: str, seconds: int) -> None:
    before, said = pfc_writes(boot.lab, host), journal(boot.lab, host)
    during = flap(boot.lab, host, seconds)
    for rail in RAILS:
        assert during[rail]["rate"] == "1: DOWN"
        assert {**during[rail], "rate": "4: ACTIVE"} == boot.wanted[host][rail]
    boot.is_back(host)
    assert pfc_writes(boot.lab, host) == before
    assert journal(boot.lab, host) == said, "a flap is no event of the device: the tool does not even run"


# The owner's default: carrier not ignored. For the second rail alone where the manager's files are one a rail.
DEFAULTS = {
    "networkd": f"sed -i '/^ConfigureWithoutCarrier=/d;/^IgnoreCarrierLoss=/d' /etc/systemd/network/20-{RAILS[1]}"
                f".network.d/60-aidc-rail.conf && networkctl reload && networkctl reconfigure {RAILS[1]}",
    "netplan": "sed -i 's/, *\"ignore-carrier\": true//;s/\"ignore-carrier\": true, *//' "
               "/etc/netplan/90-aidc-rails.yaml && netplan generate && networkctl reload && "
               f"networkctl reconfigure {RAILS[1]}",
    "networkmanager": "rm /etc/NetworkManager/conf.d/90-aidc-rails.conf && systemctl restart NetworkManager",
}


@pytest.mark.parametrize("host", HOSTS)
def test_with_the_managers_default_a_flap_costs_the_gids_and_the_tool_says_why(boot: Boot, host: str) -> None:
    """The negative twin: what our files are for (host-setup.md 1.5)."""
    boot.lab.inside(host, "sh", "-c", DEFAULTS[OWNERS[host]])
    back(lambda: state(boot.lab, host), boot.wanted[host])
    during = flap(boot.lab, host, 10, (1,))
    assert (during[RAILS[1]]["addresses"], during[RAILS[1]]["gids"]) == ([], [])
    assert during[RAILS[1]]["pfc"] == boot.wanted[host][RAILS[1]]["pfc"]
    told = tool(boot.lab, host, "--check")
    assert told.returncode == 2
    assert f"saved carrier of {PCIS[1]} ({RAILS[1]}): got not ignored, wanted ignored" in told.stdout
    done = boot.done("--limit", host)
    assert done.results(BOOT)[host]["drift"] == []
    # netplan has udev tell the devices again, and so the tool has run meanwhile and could not put this right.
    boot.lab.inside(host, "systemctl", "reset-failed", "aidc-fabric@*")
    boot.is_back(host)


LOST = (f"dcb app flush dev {RAILS[0]} dscp-prio; dcb pfc set dev {RAILS[0]} prio-pfc all:off; sleep 2; "
        f"dcb pfc set dev {RAILS[1]} prio-pfc all:off; sleep 2; ethtool -A {RAILS[1]} rx on tx on")
# The program that the tool calls kills it at the second write.
KILLER = """\
#!/bin/sh
case "$*" in *" set "*|*" add "*)
    if [ -e /run/killed ]; then kill -9 $PPID; exit 1; fi
    touch /run/killed;;
esac
exec /usr/sbin/dcb.real "$@"
"""


def test_killed_between_two_writes_the_next_run_converges(boot: Boot) -> None:
    lab, host = boot.lab, "bdeb"
    lab.inside(host, "sh", "-c", LOST)
    lab.inside(host, "sh", "-c", f"mv /usr/sbin/dcb /usr/sbin/dcb.real; cat > /usr/sbin/dcb <<'END'\n{KILLER}END\n"
                                 "chmod 755 /usr/sbin/dcb")
    try:
        killed = tool(lab, host, "apply")
    finally:
        lab.inside(host, "mv", "/usr/sbin/dcb.real", "/usr/sbin/dcb")
    assert killed.returncode not in (0, 2, 3)
    assert state(lab, host) != boot.wanted[host]
    done = tool(lab, host, "apply")
    assert done.returncode == 0 and "pfc set" in done.stdout
    boot.is_back(host)
    assert boot.done("--limit", host).changed() == {}


def test_a_port_that_is_gone_is_told_and_the_other_is_kept(boot: Boot) -> None:
    lab, host = boot.lab, "bdeb"
    where = lab.instance.host_dir(host) / "door"
    door.ask(where, {"do": "lose", "rail": 1})
    run_lab("driver-reload", host, name=NAME)
    try:
        back(lambda: state(lab, host)[RAILS[0]], boot.wanted[host][RAILS[0]])
        told = tool(lab, host, "--check")
        assert told.returncode == 2 and f"ports: {PCIS[1]}: the device is not there" in told.stdout
    finally:
        door.ask(where, {"do": "find", "rail": 1})
        run_lab("driver-reload", host, name=NAME)
    boot.is_back(host)


def test_a_tool_that_was_switched_off_is_found(boot: Boot) -> None:
    boot.lab.inside("bdeb", "systemctl", "disable", "aidc-fabric.service")
    play = boot.play("--limit", "bdeb", fabric_boot_mode="verify")
    assert play.code != 0 and "bdeb: the boot tool is not enabled; would run: systemctl enable" in play.text
    assert boot.lab.inside("bdeb", "systemctl", "is-enabled", "aidc-fabric.service", check=False).stdout == "disabled\n"
    assert boot.done("--limit", "bdeb").results(BOOT)["bdeb"]["commands"] == [
        ["systemctl", "enable", "aidc-fabric.service"]]
    boot.lab.inside("bdeb", "rm", "/etc/udev/rules.d/90-aidc-fabric.rules")
    assert "90-aidc-fabric.rules" in boot.play("--limit", "bdeb", fabric_boot_mode="verify").text
    boot.done("--limit", "bdeb")


@pytest.mark.parametrize(("spoil", "text"), [
    (f"head -c 300 {INTENT} > /tmp/i && cp /tmp/i {INTENT}", "no JSON"),
    (f"sed -i 's/\"schema_version\": 1/\"schema_version\": 2/' {INTENT}", "a newer release of the collection wrote it"),
])
def test_an_intent_that_cannot_be_read_is_found_and_nothing_is_written(boot: Boot, spoil: str, text: str) -> None:
    lab, host = boot.lab, "bubu"
    lab.inside(host, "cp", INTENT, "/root/kept")
    lab.inside(host, "sh", "-c", spoil)
    spoiled = lab.inside(host, "cat", INTENT).stdout
    try:
        done = tool(lab, host, "apply", "--reason", "boot")
        assert (done.returncode, done.stdout) == (3, "") and text in done.stderr
        play = boot.play("--limit", host)
        assert play.code != 0 and text in play.text and "Nothing was changed." in play.text
        assert lab.inside(host, "cat", INTENT).stdout == spoiled
        # As the hint says.
        lab.inside(host, "rm", INTENT)
        assert boot.done("--limit", host).results(BOOT)[host]["drift"] == []
    finally:
        lab.inside(host, "mv", "/root/kept", INTENT)


def intent(lab: Lab, play: Path, state_: str, *hosts: str) -> dict[str, dict[str, Any]]:
    module = "aidc.gpu_cluster.fabric_intent"
    file = play.with_name("intent.yml")
    file.write_text(json.dumps([{"hosts": ",".join(hosts), "gather_facts": False, "become": True, "tasks": [
        {"name": "Intent", module: {"state": state_, "run_id": "test"}}]}]), encoding="utf-8")
    done = lab.play(str(file))
    assert done.code == 0, done.text[-4000:]
    return done.results(module)


def test_rollback(boot: Boot) -> None:
    lab, passed = boot.lab, ["bdeb", "brhel"]
    assert all(result["commands"] == [["write", GOOD]] for result in intent(lab, boot.file, "good", *passed).values())
    change = {"roce_qos_dscp": 24, "mlx5_port_mtu_bytes": 9000, "mlx5_port_max_read_request_bytes": 2048}
    boot.done(**change)
    assert state(lab, "bdeb") != boot.wanted["bdeb"]
    words = intent(lab, boot.file, "read", *passed)["bdeb"]["words"]
    assert "roce_qos: dscp was 26, is 24" in words
    assert f"rail_network of {PCIS[0]}: mtu_bytes was 4200, is 9000" in words
    predicted = lab.play("playbooks/rollback.yml", "--check", "--limit", ",".join(passed))
    assert predicted.code == 0, predicted.text[-4000:]
    assert state(lab, "bdeb") != boot.wanted["bdeb"]
    play = lab.play("playbooks/rollback.yml")
    # The host that never passed is named, and the others go back.
    assert play.code != 0 and "bubu has no good intent" in play.text
    assert [host for host, numbers in play.stats.items() if numbers["failures"]] == ["bubu"]
    for host in passed:
        boot.is_back(host)
        files = lab.inside(host, "sh", "-c", "grep -rhoiE '(MTUBytes|^mtu)=[0-9]+' /etc/systemd/network "
                                             "/etc/NetworkManager/system-connections 2>/dev/null", check=False).stdout
        assert "4200" in files and "9000" not in files, "the files for the next boot"
    now = intent(lab, boot.file, "read", *passed)
    assert all(entry["words"] == [] and entry["intent"] == entry["good"] for entry in now.values())
    assert lab.play("playbooks/rollback.yml", "--limit", ",".join(passed)).changed() == {}
    run_lab("reboot", "bdeb", name=NAME)
    boot.is_back("bdeb")
    boot.done()
    boot.is_back("bubu")
