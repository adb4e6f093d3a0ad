# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/audit.yml on what is recorded: expectations from an inventory, report, exit code; no host is contacted."""
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import yaml
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import store

from plugins.module_utils._audit import expect
from tests.unit.playbooks.test_playbooks import ROOT, inventory, playbook, words

PROD = ROOT / "inventories" / "prod"
PCI = ("0000:41:00.0", "0000:c1:00.0")
VERIFY = ("-e", "fabric_audit_mode=verify")


def record(folder: Path, host: str, number: int, mtu: int = 4200) -> None:
    """As mlx5_port leaves it."""
    devices = []
    for rail, pci in enumerate(PCI):
        gid = {"index": 3, "type": "RoCE v2", "ndev": f"rail{rail}", "family": "ipv4",
               "address": f"10.21.{rail}.{number}"}
        port = {"state": "ACTIVE", "netdev": f"rail{rail}", "mtu_bytes": mtu, "rdma_mtu_bytes": 4096, "gids": [gid],
                "link_layer": "Ethernet", "speed_gbps": 200.0, "saved_mtu_bytes": 4200,
                "network_file": "/etc/x.network"}
        devices.append({"pci": pci, "rail": rail, "is_vf": False, "ports": [port], "psid": "MT_1",
                        "pcie": {"current_speed_gts": 16.0, "current_width": 16}, "firmware_version": "22.36.1010"})
    store.store(folder / ".state", "mlx5_info", host, {"devices": devices, "problems": [], "findings": []}, None)


def hosts(*names: str, **more: t.Any) -> dict[str, t.Any]:
    return {"l40s": {name: {"rail_network_node_index": number, "rail_network_subnets": ["10.21.0.0/24", "10.21.1.0/24"],
                            "fabric_switch_mtu_bytes": "{{ 9000 + 216 }}", "roce_qos_mode": "off", **more}
                     for number, name in enumerate(names, 1)}}


def report(folder: Path) -> dict[str, t.Any]:
    found: dict[str, t.Any] = json.loads((folder / ".state" / "audit" / "audit.json").read_text(encoding="utf-8"))
    return found


def test_the_report_names_the_host_and_the_play_fails(tmp_path: Path) -> None:
    path = inventory(tmp_path, hosts("a", "b", "c"))
    for number, name in enumerate("abc", 1):
        record(tmp_path, name, number, 1500 if name == "b" else 4200)
    done = playbook(path, "playbooks/audit.yml", *VERIFY)
    assert done.returncode == 2
    assert "mtu-running: b: got netdev MTU 1500, wanted 4200" in words(done.stdout + done.stderr)
    found = report(tmp_path)
    errors = [(one["id"], one["hosts"]) for one in found["findings"] if one["severity"] == "error"]
    assert errors == [("mtu-running", ["b"])]
    assert found["counts"]["error"] == 1 and found["hosts"] == 3
    document = json.loads((tmp_path / ".state" / "audit" / "expect.json").read_text(encoding="utf-8"))
    assert len(document["policies"]) == 1 and expect.load(document)[1].rails[0].address == "10.21.0.2/24"
    assert expect.load(document)[0].rails[0].want.switch_mtu == 9216
    assert playbook(path, "playbooks/audit.yml", *VERIFY, "-e", "fabric_audit_fail_on=never").returncode == 0


def test_a_limit_leaves_nobody_out(tmp_path: Path) -> None:
    path = inventory(tmp_path, hosts("a", "b"))
    record(tmp_path, "a", 1)
    done = playbook(path, "playbooks/audit.yml", *VERIFY, "--limit", "a")
    assert done.returncode == 2 and "record-missing: b" in words(done.stdout + done.stderr)
    record(tmp_path, "b", 2)
    assert playbook(path, "playbooks/audit.yml", *VERIFY, "--limit", "a").returncode == 0


def test_a_host_that_cannot_be_read_now_fails_although_its_record_is_sound(tmp_path: Path) -> None:
    path = inventory(tmp_path, hosts("a", "b", "c", ansible_host="127.0.0.1", ansible_port=1))
    for number, name in enumerate("abc", 1):
        record(tmp_path, name, number)
    assert playbook(path, "playbooks/audit.yml", *VERIFY).returncode == 0
    done = playbook(path, "playbooks/audit.yml", "--limit", "a", "-e", "fabric_audit_measure=false")
    assert done.returncode != 0
    assert "a: what the audit says of it rests on earlier records" in words(done.stdout + done.stderr)
    never = ("--limit", "a", "-e", "fabric_audit_measure=false", "-e", "fabric_audit_fail_on=never")
    assert playbook(path, "playbooks/audit.yml", *never).returncode == 0


def test_check_mode_writes_nothing(tmp_path: Path) -> None:
    path = inventory(tmp_path, hosts("a"))
    record(tmp_path, "a", 1)
    assert playbook(path, "playbooks/audit.yml", *VERIFY, "--check").returncode == 0
    assert not (tmp_path / ".state" / "audit").exists()


def test_what_is_meant_is_allowed_by_host(tmp_path: Path) -> None:
    path = inventory(tmp_path, hosts("a", "b", "c", fabric_audit_allow=["mtu-running"]))
    for number, name in enumerate("abc", 1):
        record(tmp_path, name, number, 1500)
    assert playbook(path, "playbooks/audit.yml", *VERIFY).returncode == 0


def test_unsound_variables_are_named(tmp_path: Path) -> None:
    path = inventory(tmp_path, hosts("a", "b", rail_network_node_index=7))
    done = playbook(path, "playbooks/audit.yml", *VERIFY)
    assert done.returncode == 2 and "address 10.21.0.7" in words(done.stdout + done.stderr)


def test_the_site_of_84_nodes_has_few_policies_and_its_vault_is_not_opened(tmp_path: Path) -> None:
    done = playbook(PROD, "playbooks/audit.yml", *VERIFY, "-e", f"aidc_state_dir={tmp_path}",
                    "-e", "fabric_audit_fail_on=never")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    document = json.loads((tmp_path / "audit" / "expect.json").read_text(encoding="utf-8"))
    assert len(document["policies"]) == 4 and len(document["hosts"]) == 84
    rail = document["hosts"]["gb2-03"]["rails"]["0000:03:00.0"]
    assert rail[:2] == ["203.0.113.5/31", "203.0.113.0/26"]
    assert "203.0.113.4/31 table 101" in rail[2] and "198.51.100.0/24 via 203.0.113.4 table 101" in rail[2]
    assert yaml.safe_load((PROD / "hosts.yml").read_text(encoding="utf-8"))
