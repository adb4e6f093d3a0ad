# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover import propose, read, table

from tests.unit.plugins.module_utils._discover.case import classes, l40s, tray


def words(line: str) -> list[str]:
    return [cell for cell in line.split("  ") if cell]


def test_tables() -> None:
    results = l40s()
    results.port(1)["speed_gbps"] = None
    hosts = [tray().host(), results.host(), read.host("down", {"unreachable": True, "msg": "x"}, None)]
    fleet = propose.fleet(hosts, classes())
    lines = table.hosts_table(fleet)
    assert [word.strip() for word in words(lines[0])] == list(table.HOSTS)
    assert [word.strip() for word in words(lines[1])] == [
        "g1", "gb200", "4 x GB200 (10de:2941)", "4", "400", "Ethernet", "nvl1", "networkd", "ubuntu 24.04", "inbox"]
    assert "200, ?" in lines[2]
    assert lines[3].split()[:3] == ["down", "no", "answer"]
    rails = table.rails_table(fleet)
    assert len(rails) == 1 + 4 + 2
    assert rails[1].split() == ["g1", "0", "0000:03:00.0", "rail0", "400", "Ethernet", "198.51.0.0/24", "?", "networkd"]
    assert [item["host"] for item in table.differences(fleet)] == ["l1", "down"]


def test_nothing_is_odd() -> None:
    fleet = propose.fleet([tray().host()], classes())
    assert table.differences(fleet) == []
    assert table.differences_table(fleet) == ["no host differs from its class, and nothing else is odd"]
