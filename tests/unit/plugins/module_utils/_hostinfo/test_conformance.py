# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collected samples of host tools against what their index expects; skipped where there are none."""
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._hostinfo import model, parse
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._hostinfo.model import Neighbour, TimeState
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail import parse as rail_parse

SAMPLES = Path(__file__).resolve().parents[5].parent / "shared" / "samples"
pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="skipped: no folder of field samples beside the checkout")
HEAD = "==============NVSMI LOG==============\nGPU 00000000:01:00.0\n"


def text(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text(encoding="utf-8")


def test_dgx_release() -> None:
    found = parse.base_os(text("dgx_release-1"))
    assert found is not None
    assert (found["version"], found["build"], found["platform"]) == ("7.5.0", "7.2.3", "DGX Server for GALAXY-GB300")


def test_clock() -> None:
    assert parse.chrony(text("chronyc_tracking-1")) == TimeState("chrony", True, 2.968e-06, 9)
    assert parse.chrony(text("chronyc_tracking-2")).synchronised is False
    with pytest.raises(ValueError):
        parse.chrony(text("chronyc_tracking-3"))
    assert parse.timedatectl(text("timedatectl_show-1")) == TimeState("timedatectl", False)


def test_lldp() -> None:
    assert parse.neighbours(text("lldpcli_json0-1")) == [
        Neighbour("ens1f0np0", "leaf01-r0", "02:00:00:00:01:01", "swp1s0")]
    # The other format has objects where this one has lists; it is refused, not misread.
    for number in (1, 2, 3):
        with pytest.raises(ValueError):
            parse.neighbours(text(f"lldpcli_json-{number}"))


@pytest.mark.parametrize(("number", "version", "flavour"), [
    (1, "550.144.03", "open"), (2, "580.173.02", "proprietary"), (3, "580.126.09", "open")])
def test_nvidia(number: int, version: str, flavour: str) -> None:
    found = parse.nvidia_version(text(f"proc_driver_nvidia_version-{number}"))
    assert found == {"version": version, "flavour": flavour}


def test_fabric() -> None:
    unhealthy, refused, bare = (parse.fabrics(HEAD + text(f"nvidia-smi_q_fabric-{number}")) for number in (1, 2, 3))
    assert model.nvlink_domain(unhealthy) == (
        {"cluster_uuid": "00000000-1111-2222-3333-444444444444", "clique_id": 2}, None)
    assert "Insufficient Resources" in str(model.nvlink_domain(refused)[1])
    assert "no cluster UUID" in str(model.nvlink_domain(bare)[1])
    for number in (1, 2):
        whole = parse.fabrics(text(f"nvidia-smi_q-{number}"))
        assert model.nvlink_domain(whole)[0] is None, "no domain on HGX and older drivers"


def test_network_manager_lists() -> None:
    """The owner readers that host_info uses, on the samples of both managers."""
    devices = rail_parse.devices(text("nmcli_dev-1"))
    assert devices["ens1f0np0"][0] == "connected" and "externally" in devices["eth0"][0]
    assert any(one.path.startswith("/etc/") for one in rail_parse.connections(text("nmcli_con-1")))
