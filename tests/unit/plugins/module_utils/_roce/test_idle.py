# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a call is done while a port is in use."""
from __future__ import annotations

import json
import shutil
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.configure import configure

from tests.unit.plugins.fake import ok
from tests.unit.plugins.holders import slurm_step, verbs
from tests.unit.plugins.module_utils._roce.conftest import request_of
from tests.unit.plugins.module_utils._roce.fake import PCIS, Qos

BOTH: dict[str, t.Any] = {"ports": [{"pci": pci} for pci in PCIS]}


def connected(qos: Qos, *devices: str) -> None:
    qos.node.override[("rdma",)] = lambda call: ok(json.dumps(
        [{"ifname": device, "type": "RC", "pid": 77, "comm": "train"} for device in devices]))


def both(qos: Qos, **options: t.Any) -> dict[str, t.Any]:
    request, machine = request_of(**{**BOTH, **options}), qos.node.machine()
    predicted, done = configure(machine, request, True), configure(machine, request, False)
    assert predicted == done
    again = configure(machine, request, False)
    assert (again["changed"], again["deferred"]) == (False, done["deferred"])
    return done


@pytest.mark.parametrize("backend", ["dcb", "mlnx_qos"])
def test_the_idle_port_is_set_and_the_one_in_use_waits(qos: Qos, backend: str) -> None:
    connected(qos, "mlx5_0")
    done = both(qos, backend=backend)
    assert {step["pci"] for step in done["steps"]} == {PCIS[1]}
    assert [entry["pfc"] for entry in done["after"]] == [[], [3]]
    (entry,) = done["deferred"]
    assert (entry["pci"], entry["netdev"], entry["holders"]) == (
        PCIS[0], "rail0", ["pid 77 train has connections on mlx5_0"])
    assert any("pfc" in word for step in entry["steps"] for word in step)
    assert not [call for call in qos.calls(backend) if "rail0" in call and ("set" in call or "--pfc" in call)]
    connected(qos)
    done = both(qos, backend=backend)
    assert {step["pci"] for step in done["steps"]} == {PCIS[0]} and done["deferred"] == []
    assert [entry["pfc"] for entry in done["after"]] == [[3], [3]]


def test_ecn_and_cnp_of_a_port_in_use_are_set(ofed: Qos) -> None:
    connected(ofed, "mlx5_0", "mlx5_1")
    ofed.node.put("/sys/class/net/rail0/ecn/roce_np/enable/3", "0\n")
    ofed.node.put("/sys/class/net/rail0/ecn/roce_np/cnp_dscp", "40\n")
    done = both(ofed, ports=[{"pci": PCIS[0]}])
    assert [step["groups"] for step in done["steps"]] == [["ecn"], ["cnp"]]
    waiting = {word for step in done["deferred"][0]["steps"] for word in step}
    assert {"--pfc", "--trust", "/sys/class/infiniband/mlx5_0/tc/1/traffic_class"} <= waiting


def test_the_map_waits_with_the_pfc_of_its_priority(qos: Qos) -> None:
    """Else the packets of a job would be in priority 4 before it is lossless."""
    both(qos)
    connected(qos, "mlx5_0")
    done = both(qos, priority=4)
    assert {step["pci"] for step in done["steps"]} == {PCIS[1]}
    assert done["after"][0]["dscp_map"][26] == 3 and done["after"][1]["dscp_map"][26] == 4


def test_without_a_step_that_stops_the_link_all_is_set(qos: Qos) -> None:
    both(qos)
    connected(qos, "mlx5_0", "mlx5_1")
    qos.ports["rail0"]["app"][26] = 0
    done = both(qos)
    assert ([step["groups"] for step in done["steps"]], done["deferred"], done["rdma_users_known"]) == (
        [["dscp_map"]], [], None)


def test_a_job_that_ended_lets_the_next_run_go_on(qos: Qos) -> None:
    verbs(qos.node.root, ["mlx5_0", "rocep3s0f0"])
    holder = slurm_step(qos.node.root, 1234, "all_reduce_perf", "/dev/infiniband/uverbs0")
    done = both(qos)
    assert (done["commands"], len(done["deferred"])) == ([], 2)
    assert done["deferred"][0]["holders"] == ["Slurm job 4242 step 0 (pid 1234 all_reduce_perf) holds mlx5_0"]
    shutil.rmtree(holder)
    assert both(qos)["deferred"] == []


@pytest.mark.parametrize(("policy", "count"), [("force", 0), ("never", 2)])
def test_policies(qos: Qos, policy: str, count: int) -> None:
    connected(qos, "mlx5_0")
    assert len(both(qos, disruption_policy=policy)["deferred"]) == count
