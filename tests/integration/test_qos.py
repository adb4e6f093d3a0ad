# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role roce_qos on lab hosts: converge, change nothing again, put back exactly what was changed, survive a reboot."""
from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lab.hardware import door
from tests.integration.conftest import Lab, Labs, Play

# Minutes: `make full` runs these; `make test` has the molecule scenario of the role.
pytestmark = pytest.mark.slow

FLEET = "tests/integration/fleets/qos.yml"
GB, L40S = "qgb1", "ql40s1"
RAILS = {GB: ["enp3s0f0np0", "enP2p3s0f0np0", "enP16p3s0f0np0", "enP18p3s0f0np0"],
         L40S: ["enp65s0f0np0", "enp193s0f0np0"]}
PCI = {L40S: ["0000:41:00.0", "0000:c1:00.0"]}
MODULE = "aidc.gpu_cluster.roce_qos"
ROLE = """
- name: QoS of the rails
  hosts: all
  gather_facts: false
  roles:
    - role: aidc.gpu_cluster.roce_qos
"""
SOURCES = """
- name: Package repositories
  hosts: all
  gather_facts: false
  roles:
    - role: aidc.gpu_cluster.package_sources
"""
DEFAULT = {dscp: dscp >> 3 for dscp in range(64)}
ALL = {"trust", "dscp_map", "ets", "pfc", "cm_tos"}


class Qos:
    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.file = lab.inventory.parent / f"{lab.inventory.name}-role.yml"
        self.file.write_text(ROLE, encoding="utf-8")

    def role(self, *argv: str, limit: str = "", **variables: Any) -> Play:
        more = ["--limit", limit] if limit else []
        if variables:
            more += ["-e", json.dumps({f"roce_qos_{name}": value for name, value in variables.items()})]
        return self.lab.play(str(self.file), *argv, *more)

    def done(self, *argv: str, **options: Any) -> Play:
        play = self.role(*argv, **options)
        assert play.code == 0, play.text[-4000:]
        return play

    def shell(self, host: str, text: str) -> str:
        return self.lab.inside(host, "sh", "-c", text).stdout

    def dcb(self, host: str, interface: str, kind: str) -> Any:
        """By a tool that is not ours."""
        return json.loads(self.shell(host, f"dcb -j {kind} show dev {interface}"))

    def tos(self, host: str, device: str) -> str:
        base = f"/sys/kernel/config/rdma_cm/{device}"
        return self.shell(host, f"mkdir {base} && cat {base}/ports/1/default_roce_tos; rmdir {base}").strip()

    def door(self, host: str, **request: Any) -> None:
        door.ask(self.lab.instance.host_dir(host) / "door", request)

    def check(self, host: str) -> None:
        for number, rail in enumerate(RAILS[host]):
            assert self.dcb(host, rail, "pfc")["prio_pfc"] == [priority == 3 for priority in range(8)]
            assert dict(self.dcb(host, rail, "app")["dscp_prio"]) == DEFAULT
            ets = self.dcb(host, rail, "ets")
            assert (ets["tc_tsa"][6], ets["tc_bw"][3], ets["prio_tc"]) == ("strict", 50, list(range(8)))
            assert self.tos(host, f"mlx5_{number}") == "104"


def result(play: Play, host: str) -> dict[str, Any]:
    return play.results(MODULE)[host]


def groups(play: Play, host: str) -> list[set[str]]:
    # The step of the host's intent has none.
    return [set(step["groups"]) for step in result(play, host)["steps"] if step["groups"]]


def flaps(qos: Qos, host: str, rail: str) -> int:
    return int(qos.shell(host, f"cat /sys/class/net/{rail}/carrier_changes"))


@pytest.fixture(scope="module")
def qos(labs: Labs) -> Qos:
    lab = labs("qos", FLEET)
    assert lab.hosts() == sorted([GB, L40S])
    # Addresses, as what the toggle of a link could cost.
    rails = lab.inventory.parent / f"{lab.inventory.name}-rails.yml"
    rails.write_text(ROLE.replace("roce_qos", "rail_network"), encoding="utf-8")
    assert lab.play(str(rails)).code == 0
    return Qos(lab)


@pytest.fixture(scope="module")
def first(qos: Qos) -> tuple[Play, Play]:
    return qos.done("--check", "--diff"), qos.done("--diff")


def test_check_mode_and_first_run_say_the_same_and_the_run_does_it(qos: Qos, first: tuple[Play, Play]) -> None:
    predicted, done = first
    for host, rails in RAILS.items():
        for key in ("changed", "commands", "diff", "before", "after"):
            assert result(predicted, host)[key] == result(done, host)[key], key
        assert set().union(*groups(done, host)) == ALL
        assert len(result(done, host)["commands"]) == 4 * len(rails) + 1
        assert result(done, host)["commands"][-1] == ["write", "/etc/aidc/intent.json"]
        assert {entry["group"] for entry in result(done, host)["unsupported"]} == {"ecn", "traffic_class"}
        qos.check(host)


def test_a_second_run_changes_nothing_and_toggles_no_link(qos: Qos, first: tuple[Play, Play]) -> None:
    before = {(host, rail): flaps(qos, host, rail) for host, rails in RAILS.items() for rail in rails}
    assert all(count >= 3 for count in before.values()), "the first run's PFC write toggles each link"
    again = qos.done()
    assert again.hosts() == sorted(RAILS) and again.changed() == {}
    assert qos.done("--check").changed() == {}
    assert {key: flaps(qos, *key) for key in before} == before
    for host, rails in RAILS.items():
        for rail in rails:
            link = json.loads(qos.shell(host, f"ip -j -4 addr show dev {rail}"))[0]
            assert link["operstate"] == "UP" and len(link["addr_info"]) == 1, "the toggle cost the address"


def test_the_record_holds_the_ports(qos: Qos, first: tuple[Play, Play]) -> None:
    file = qos.lab.inventory / ".state" / "roce_qos" / f"{L40S}.json"
    kept = json.loads(file.read_text(encoding="utf-8"))["data"]
    assert [port["pci"] for port in kept["ports"]] == PCI[L40S] and kept["ports"][0]["pfc"] == [3]


CM = "/sys/kernel/config/rdma_cm/mlx5_1"
BEHIND_OUR_BACK = {
    "trust": ("dcb app flush dev {} dscp-prio", [{"trust", "dscp_map"}]),
    "dscp_map": ("dcb app add dev {} dscp-prio 26:0", [{"dscp_map"}]),
    "dscp_map of CNP": ("dcb app del dev {} dscp-prio 48:6", [{"dscp_map"}]),
    "ets share": ("dcb ets set dev {} tc-bw 0:20 1:8 2:8 3:40 4:8 5:8 6:0 7:8", [{"ets"}]),
    "ets kind": ("dcb ets set dev {} tc-tsa 6:ets tc-bw 0:10 1:8 2:8 3:50 4:8 5:8 6:0 7:8", [{"ets"}]),
    "pfc off": ("dcb pfc set dev {} prio-pfc all:off", [{"pfc"}]),
    "pfc on a priority too many": ("dcb pfc set dev {} prio-pfc 4:on", [{"pfc"}]),
    "cnp": ("echo 4 > /sys/kernel/debug/mlx5/0000:c1:00.0/cc_params/np_cnp_dscp", [{"cnp"}]),
    "cnp mode": ("echo 1 > /sys/kernel/debug/mlx5/0000:c1:00.0/cc_params/np_cnp_prio_mode", [{"cnp"}]),
    "cm_tos": (f"mkdir {CM}; echo 96 > {CM}/ports/1/default_roce_tos; rmdir {CM}", [{"cm_tos"}]),
    "cm_tos of the same DSCP": (f"mkdir {CM}; echo 106 > {CM}/ports/1/default_roce_tos; rmdir {CM}", []),
}


def put_back(qos: Qos, wanted: list[set[str]], **variables: Any) -> None:
    """Check mode and run agree, and only ``wanted`` is done, only to the second rail.

    That nothing is left shows in the next case: its own group alone.
    """
    predicted, done = qos.done("--check", limit=L40S, **variables), qos.done(limit=L40S, **variables)
    assert groups(done, L40S) == wanted
    assert result(predicted, L40S)["commands"] == result(done, L40S)["commands"]
    assert {step["pci"] for step in result(done, L40S)["steps"] if step["groups"]} <= {PCI[L40S][1]}


@pytest.mark.parametrize("what", BEHIND_OUR_BACK)
def test_one_value_changed_behind_our_back_is_put_back_alone(qos: Qos, first: tuple[Play, Play], what: str) -> None:
    change, wanted = BEHIND_OUR_BACK[what]
    qos.shell(L40S, change.format(RAILS[L40S][1]))
    time.sleep(1.5)  # a PFC change toggles the link
    put_back(qos, wanted)
    if what != "cm_tos of the same DSCP":
        qos.check(L40S)
    else:
        qos.shell(L40S, change.replace("106", "104"))


BUFFER = {"prio_buffer": [0, 0, 0, 1, 0, 0, 0, 0], "buffer_size_bytes": [100000, 300000, 0, 0, 0, 0, 0, 0]}


@pytest.mark.parametrize(("group", "change"), [
    ("cable_length", "dcb pfc set dev {} delay 5"),
    ("buffer", "dcb buffer set dev {} prio-buffer all:1 buffer-size 0:0 1:400000"),
])
def test_buffers_and_cable_are_managed_when_given(
    qos: Qos, first: tuple[Play, Play], group: str, change: str
) -> None:
    variables = {"buffer": BUFFER, "cable_length_metres": 20}
    qos.done(limit=L40S, **variables)
    qos.shell(L40S, change.format(RAILS[L40S][1]))
    assert qos.done(limit=L40S).changed() == {}, "not managed unless given"
    put_back(qos, [{group}], **variables)


def test_too_small_a_buffer_is_the_kernels_error_and_named(qos: Qos, first: tuple[Play, Play]) -> None:
    small = {**BUFFER, "buffer_size_bytes": [100000, 30000, 0, 0, 0, 0, 0, 0]}
    play = qos.role(limit=L40S, buffer=small)
    assert play.code != 0
    message = result(play, L40S)["msg"]
    assert "dcb buffer set dev" in message and "Cannot allocate memory" in message


def test_firmware_dcbx_is_refused_with_the_way_out_and_taken_over_when_asked(
    qos: Qos, first: tuple[Play, Play]
) -> None:
    qos.door(L40S, do="register", rail=1, name="DCBX", value="fw")
    refused = qos.role(limit=L40S)
    assert refused.code != 0
    message = result(refused, L40S)["msg"]
    assert "owned by the firmware" in message and "take_over: true" in message
    assert message.endswith("Nothing was changed.")
    put_back(qos, [{"dcbx"}], take_over=True)


def test_mode_verify_fails_where_something_would_be_changed(qos: Qos, first: tuple[Play, Play]) -> None:
    assert qos.done(mode="verify").changed() == {}
    qos.shell(L40S, f"dcb app add dev {RAILS[L40S][0]} dscp-prio 26:0")
    play = qos.role(mode="verify")
    assert play.code != 0 and f"{L40S} would run: dcb app add dev {RAILS[L40S][0]} dscp-prio 26:3" in play.text
    assert dict(qos.dcb(L40S, RAILS[L40S][0], "app")["dscp_prio"])[26] == 0
    assert groups(qos.done(), L40S) == [{"dscp_map"}]


@pytest.mark.parametrize(("variables", "text"), [
    ({"dscp": 64}, "dscp of 0000:41:00.0: got 64, wanted 0 to 63"),
    ({"priority": 8}, "got 8, wanted 0 to 7"),
    ({"cnp": {"dscp": 48, "priority": 3}}, "got 3, the priority of RoCE data, wanted another priority"),
    ({"ets": {"prio_tc": [*range(8)], "tc_tsa": ["ets"] * 8, "tc_bw": [20] * 8}}, "together 160, wanted 100"),
    ({"rails": [{"pci": "0000:99:00.0"}]}, "got no such mlx5 port"),
    ({"require_groups": ["traffic_class"]}, "NCCL_IB_TC"),
])
def test_bad_input_changes_nothing(
    qos: Qos, first: tuple[Play, Play], variables: dict[str, Any], text: str
) -> None:
    play = qos.role(limit=L40S, **variables)
    assert play.code != 0
    message = result(play, L40S)["msg"]
    assert text in message and message.endswith("Nothing was changed.")


FAULTS = {
    "hung": ("#!/bin/sh\nexec sleep 1000\n", "no answer within 2 s"),
    "garbage": ("#!/bin/sh\nhead -c 4000 /dev/urandom\n", "cannot be read"),
    "failing": ("#!/bin/sh\necho 'Attribute read: Operation not supported' >&2\nexit 1\n", "has no dcbnl"),
    # Reads are true, writes say that they succeeded.
    "lying": ("#!/bin/sh\ncase \"$*\" in *' set '*) exit 0 ;; esac\nexec /usr/sbin/dcb.away \"$@\"\n",
              "read back after"),
    "missing": ("", "install the package iproute2"),
}
TOOL = "/usr/sbin/dcb"


@pytest.fixture
def broken(qos: Qos, first: tuple[Play, Play], request: pytest.FixtureRequest) -> Iterator[str]:
    text, words = FAULTS[request.param]
    qos.shell(L40S, f"dcb pfc set dev {RAILS[L40S][1]} prio-pfc 4:on; sleep 1.5; mv {TOOL} {TOOL}.away")
    if text:
        qos.shell(L40S, f"cat > {TOOL} <<'EOF'\n{text}EOF\nchmod 755 {TOOL}")
    yield words
    qos.shell(L40S, f"mv -f {TOOL}.away {TOOL}; dcb pfc set dev {RAILS[L40S][1]} prio-pfc all:off 3:on; sleep 1.5")


@pytest.mark.parametrize("broken", FAULTS, indirect=True)
def test_a_broken_tool_is_a_clear_error(qos: Qos, broken: str) -> None:
    play = qos.role(limit=L40S, tool_timeout_seconds=2)
    message = result(play, L40S)["msg"]
    assert play.code != 0 and broken in message and "Traceback" not in play.text
    assert ("Nothing was changed." in message) == ("read back" not in broken)


def test_after_a_reboot_what_was_lost_is_set_again_and_nothing_else(qos: Qos, first: tuple[Play, Play]) -> None:
    reboot = qos.lab.inventory.parent / f"{qos.lab.inventory.name}-reboot.yml"
    reboot.write_text("- hosts: all\n  gather_facts: false\n  tasks:\n"
                      "    - {ansible.builtin.reboot: {reboot_timeout: 60}, become: true}\n", encoding="utf-8")
    assert qos.lab.play(str(reboot)).code == 0
    done = qos.done()
    assert set().union(*groups(done, L40S)) == ALL
    # The board keeps its NICs' power, and so their port registers.
    assert set().union(*groups(done, GB)) == {"ets", "cm_tos"}
    for host in RAILS:
        qos.check(host)
    assert qos.done().changed() == {}


OFED_BACK = {
    "ecn": ("echo 0 > /sys/class/net/{}/ecn/roce_rp/enable/3", [{"ecn"}]),
    "ecn of another priority": ("echo 0 > /sys/class/net/{}/ecn/roce_rp/enable/5", []),
    "ecn of the port": ("echo 0 > /sys/class/net/{}/ecn/roce_np/enable/0", [{"ecn"}]),
    "cnp": ("echo 4 > /sys/class/net/{}/ecn/roce_np/cnp_dscp", [{"cnp"}]),
    "traffic_class": ("echo 96 > /sys/class/infiniband/mlx5_1/tc/1/traffic_class", [{"traffic_class"}]),
    "cm_tos": ("cma_roce_tos -d mlx5_1 -t 96", [{"cm_tos"}]),
    "trust": ("mlnx_qos -i {} --trust pcp", [{"trust"}]),
    "dscp_map": ("mlnx_qos -i {} --dscp2prio set,26,0", [{"dscp_map"}]),
    "ets": ("mlnx_qos -i {} -s ets,ets,ets,strict,ets,ets,strict,ets -t 20,20,20,0,20,10,0,10", [{"ets"}]),
    "pfc": ("mlnx_qos -i {} --pfc 0,0,0,0,0,0,0,0; sleep 1.5", [{"pfc"}]),
    "dcbx": ("mlnx_qos -i {} -d fw", [{"dcbx"}]),
}


@pytest.fixture(scope="module")
def ofed(qos: Qos, first: tuple[Play, Play]) -> Play:
    """The driver of DOCA-OFED with its tools, from the lab's repository."""
    sources = qos.lab.inventory.parent / f"{qos.lab.inventory.name}-sources.yml"
    sources.write_text(SOURCES, encoding="utf-8")
    assert qos.lab.play(str(sources), "--limit", L40S).code == 0
    qos.shell(L40S, "DEBIAN_FRONTEND=noninteractive apt-get -qq install mlnx-tools")
    qos.door(L40S, do="stack", name="ofed")
    return qos.done(limit=L40S)


def test_with_the_ofed_driver_its_tool_and_files_are_used(qos: Qos, ofed: Play) -> None:
    assert result(ofed, L40S)["backend"] == "mlnx_qos" and result(ofed, L40S)["unsupported"] == []
    assert set().union(*groups(ofed, L40S)) == {"ets", "cm_tos", "traffic_class"}
    assert qos.done(limit=L40S).changed() == {}
    assert qos.shell(L40S, "cat /sys/class/infiniband/mlx5_0/tc/1/traffic_class").strip() == "Global tclass=104"
    assert qos.shell(L40S, "cma_roce_tos -d mlx5_0").strip() == "104"
    assert "v2" in qos.shell(L40S, "show_gids mlx5_0")
    qos.check(L40S)


@pytest.mark.slow
@pytest.mark.parametrize("what", OFED_BACK)
def test_one_value_changed_through_the_ofed_tools_is_put_back_alone(qos: Qos, ofed: Play, what: str) -> None:
    change, wanted = OFED_BACK[what]
    qos.shell(L40S, change.format(RAILS[L40S][1]))
    put_back(qos, wanted, take_over=True)


def test_lldpad_is_refused_and_stopped_when_asked(qos: Qos, first: tuple[Play, Play]) -> None:
    unit = "/etc/systemd/system/lldpad.service"
    qos.shell(L40S, f"printf '[Service]\\nExecStart=sleep 1000\\n[Install]\\nWantedBy=multi-user.target\\n' > {unit}; "
                    "systemctl daemon-reload; systemctl enable --now lldpad.service 2>/dev/null")
    refused = qos.role(limit=L40S)
    assert refused.code != 0 and "lldpad.service: got it runs" in result(refused, L40S)["msg"]
    done = qos.done(limit=L40S, take_over=True)
    assert result(done, L40S)["commands"] == [["systemctl", "disable", "--now", "lldpad.service"]]
    assert qos.done(limit=L40S).changed() == {}
