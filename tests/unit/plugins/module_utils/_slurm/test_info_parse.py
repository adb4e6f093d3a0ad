# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import info_parse, node_parse

FIXTURES = Path(__file__).resolve().parent / "fixtures"
PARTITION = ("PartitionName=train AllowGroups=ALL Default=YES MaxTime=UNLIMITED Nodes=n[1-4] State=UP TotalCPUs=16 "
             "TotalNodes=4 JobDefaults=(null) TRES=cpu=16,mem=8000M,node=4,gres/gpu=16\n")
RESERVATION = ("ReservationName=maint StartTime=2026-11-30T22:11:20 EndTime=2026-11-30T22:21:20 Duration=00:10:00 "
               "Nodes=n3 NodeCnt=1 Features=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES TRES=cpu=4 Users=root "
               "Groups=(null) State=ACTIVE MaxStartDelay=(null)\n")
UNITS = """\
Id=munge.service
LoadState=loaded
ActiveState=active
UnitFileState=enabled

Id=slurmd.service
LoadState=not-found
ActiveState=inactive
UnitFileState=
"""


def fixture(name: str) -> str:
    """Captured from Slurm 24.11.5 of Debian 13; the kernel's name is replaced."""
    return (FIXTURES / name).read_text(encoding="utf-8")


def test_captured_nodes() -> None:
    told = {node.name: node for node in node_parse.json_nodes(fixture("scontrol_show_node_json-24.11.json"))}
    text = {node.name: node for node in node_parse.text_nodes(fixture("scontrol_show_node-24.11.txt"))}
    assert set(told) == set(text) == {"n1", "n2", "n3", "n4"}
    for name, node in told.items():
        one, other = node.details(), text[name].details()
        for key in ("gres_used", "reason_time", "boot_time"):
            one.pop(key), other.pop(key)
        assert one == other
    assert told["n2"].reason.text == "rail 2 slow | bar" and told["n2"].reason.run_id == "r1"
    assert told["n1"].reason.kind == "foreign" and told["n1"].reason_user == "root"
    assert told["n3"].state.text() == "IDLE+MAINTENANCE+RESERVED"


def test_captured_sinfo() -> None:
    found = node_parse.sinfo_json(fixture("sinfo_json-24.11.json"))
    assert "n1" in found and found["n1"].state.base == "MIXED"


def test_config() -> None:
    found = info_parse.config(fixture("scontrol_show_config-24.11.txt"))
    assert (found["ClusterName"], found["SLURM_VERSION"]) == ("lab", "24.11.5")
    assert found["TopologyPlugin"] == "topology/block" and found["AccountingStorageBackupHost"] == ""
    assert found["SlurmctldHost[0]"] == "h1" and len(found) > 200
    same = {**found, "BOOT_TIME": "x", "NEXT_JOB_ID": "99"}
    assert info_parse.digest(same) == info_parse.digest(found) != info_parse.digest({**found, "ClusterName": "x"})
    with pytest.raises(ValueError, match="no key SLURM_VERSION"):
        info_parse.config("slurm_load_ctl_conf error: Unable to contact slurm controller\n")


def test_partitions_and_reservations() -> None:
    assert info_parse.partitions(PARTITION) == [
        {"name": "train", "state": "UP", "default": True, "nodes": "n[1-4]", "max_time": "UNLIMITED",
         "nodes_total": 4, "cpus_total": 16}]
    assert info_parse.reservations(RESERVATION) == [
        {"name": "maint", "state": "ACTIVE", "nodes": "n3", "start": "2026-11-30T22:11:20",
         "end": "2026-11-30T22:21:20", "flags": ["MAINT", "IGNORE_JOBS", "SPEC_NODES"], "users": "root"}]
    assert info_parse.reservations("No reservations in the system\n") == []
    with pytest.raises(ValueError, match="wanted PartitionName="):
        info_parse.partitions("slurm_load_partitions error\n")


def test_versions_and_pings() -> None:
    assert info_parse.version("slurm-wlm 24.11.5\n") == "24.11.5"
    assert info_parse.version("slurm 25.05.0-0rc1\n") == "25.05.0-0rc1"
    with pytest.raises(ValueError):
        info_parse.version("bash 5\n")
    assert info_parse.pings("Slurmctld(primary) at ctl01 is UP\nSlurmctld(backup) at ctl02 is DOWN\n") == [
        {"role": "primary", "host": "ctl01", "up": True}, {"role": "backup", "host": "ctl02", "up": False}]
    with pytest.raises(ValueError):
        info_parse.pings("")


def test_units() -> None:
    assert info_parse.units(UNITS) == {"munge": {"active": "active", "enabled": "enabled"}}
