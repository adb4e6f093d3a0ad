# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table itself, and what is refused of one."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.faults import table as lab_table
from tests.faults import report, rows
from tests.faults.places import Host, Place, Rail
from tests.faults.schedule import NoHost, jobs, rounds

ROOT = Path(__file__).resolve().parents[4]
ROWS, PAIRS = rows.load()
# The issue's list, each with the rows that show it.
WANTED = {
    "wrong MTU on one leaf": "leaf-mtu", "RDMA MTU 1024": "rdma-mtu-1024", "missing v2 GID": "gid-missing",
    "moved GID": "gid-moved", "two candidate GIDs": "gid-two", "ARP flux": "arp-flux",
    "duplicate rail address": "address-duplicate", "missing route": "route-missing", "lldpad running": "lldpad",
    "DCBX by firmware": "dcbx-firmware", "dcb app replace without effect": "dcb-without-effect",
    "trust pcp": "trust-pcp", "PFC on the wrong priority": "pfc-wrong-priority",
    "ToS/DSCP mismatch": "tos-mismatch", "global pause": "global-pause",
    "one firmware value differing": "firmware-parameter", "reset that does not take": "reset-not-taken",
    "warm reboot": "warm-reboot", "PCIe x8": "pcie-x8", "200G link in a 400G class": "link-200g",
    "unknown firmware parameter": "parameter-unknown", "bond": "bond", "VLAN at 1500": "vlan-1500",
    "VF": "virtual-function", "BlueField in DPU mode": "bluefield-dpu", "InfiniBand port": "infiniband",
    "management on a rail": "management-on-rail", "busy device": "busy-device", "canary fails": "canary-fails",
    "two network owners": "two-owners", "NetworkManager profile in /run": "profile-in-run",
    "boot tool disabled": "boot-disabled", "intent file cut": "intent-cut", "newer schema": "intent-newer",
    "disk full": "disk-full", "killed between two writes": "killed-between-writes",
    "second operator": "second-operator",
}


def rail(number: int, base: int) -> Rail:
    return Rail(number, f"0000:{number + 1}1:00.0", f"en{number}", f"mlx5_{number}", f"192.0.{number}.{base}", 24)


HOSTS = {name: Host(name, kind, owner, leaf, tuple(rail(number, base) for number in range(count)), [])
         for base, (name, kind, owner, leaf, count) in enumerate((
             ("gb1", "gb200", "networkd", "leaf1", 4), ("l1", "l40s", "networkd", "leaf2", 2),
             ("nm1", "l40s", "networkmanager", "leaf2", 2)), 1)}


def test_every_row_of_the_issue_is_there() -> None:
    assert set(WANTED.values()) <= set(ROWS)


def test_eight_rows_are_quick_and_pairs_name_rows() -> None:
    quick = [row.name for row in ROWS.values() if row.quick]
    assert len(quick) >= 8 and any(pair.quick for pair in PAIRS.values())
    detectors = {detector.run for name in quick for detector in ROWS[name].detect}
    assert len(detectors) >= 5, "a good spread"


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_words_of_a_row_can_be_filled_on_each_host_that_fits(row: rows.Row) -> None:
    found = [job for job in jobs([row], [], HOSTS)]
    assert [job.phase for job in found] == ["fault", "twin"]
    for job in found:
        half = row.fault if job.phase == "fault" else row.twin
        for given in (list(half.set), list(half.undo), half.vars, [list(one.says) for one in row.detect]):
            assert "{netdev" not in str(job.places[0].fill(given))
        for step in (*half.set, *half.undo):
            for kind, value in step.items():
                assert kind not in ("fault", "clear") or value[0] in lab_table.load()


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_a_fault_and_its_twin_have_a_fact_and_differ(row: rows.Row) -> None:
    assert row.fact and row.fault.text != row.twin.text
    assert (row.fault.set, row.fault.vars) != (row.twin.set, row.twin.vars)


GOOD: dict[str, Any] = {"text": "a", "fact": "b", "set": [{"host": "true"}], "undo": [],
                        "detect": [{"run": "roce_gid", "says": "x"}], "twin": {"text": "c", "set": [], "undo": []}}


@pytest.mark.parametrize(("change", "words"), [
    ({"colour": "red"}, "x: got \\['colour'\\]"), ({"set": "true"}, "x.set: got 'true', wanted a list of steps"),
    ({"set": [{"dance": 1}]}, r"x.set\[0\]"), ({"detect": []}, "at least one detector"),
    ({"detect": [{"run": "magic", "says": "x"}]}, r"x.detect\[0\]"),
    ({"detect": [{"run": "roce_gid"}]}, "what each of them says"),
    ({"names": "all"}, "rail or host"), ({"where": {"class": "h100"}}, "x.where"),
    ({"twin": {"text": "c"}}, "x.twin"),
])
def test_a_table_that_cannot_be_run(change: dict[str, Any], words: str) -> None:
    assert rows.row("x", GOOD).detect[0].says == ("x",)
    with pytest.raises(rows.RowError, match=words):
        rows.row("x", {**GOOD, **change})


def test_pairs_of_a_table(tmp_path: Path) -> None:
    file = tmp_path / "t.yml"
    file.write_text(yaml.safe_dump({"rows": {"x": GOOD}, "pairs": {"p": {"text": "t", "rows": {"x": 0, "y": 1}}}}),
                    encoding="utf-8")
    with pytest.raises(rows.RowError, match="two rows of the table"):
        rows.load(file)


def test_no_host_has_two_jobs_in_a_round_and_all_are_run_once() -> None:
    made = jobs(ROWS.values(), PAIRS.values(), HOSTS)
    planned = rounds(made)
    assert sorted((job.name, job.phase) for one in planned for job in one) == sorted(
        (job.name, job.phase) for job in made)
    for together in planned:
        hosts = [host for job in together for host in job.hosts]
        assert len(hosts) == len(set(hosts))
        assert len(together) == 1 or not any(job.alone for job in together)
        assert len({job.slow for job in together}) == 1
    for name, pair in PAIRS.items():
        job, = (job for job in made if job.name == name)
        assert [place.rail.number for place in job.places] == [row.rail for row in pair.rows]
        assert len({place.host.name for place in job.places}) == 1


def test_a_row_without_a_host() -> None:
    with pytest.raises(NoHost, match="warm-reboot: no host"):
        jobs([ROWS["warm-reboot"]], [], {"l1": HOSTS["l1"]})


def test_words_keep_their_type_and_fill_keys() -> None:
    place = Place(HOSTS["l1"], HOSTS["l1"].rails[1], HOSTS["nm1"])
    assert place.fill({"{pci}": ["{rail}", "r{rail}", 5, None]}) == {"0000:21:00.0": [1, "r1", 5, None]}
    assert place.fill("{peer} {peer_ip} {subnet} {vf}") == "nm1 192.0.1.3 192.0.1 0000:21:00.1"


def test_the_table_in_the_docs_is_that_of_the_rows() -> None:
    text = (ROOT / "docs/faults.md").read_text(encoding="utf-8")
    assert report.inserted(text, ROWS, PAIRS) == text, "run: python -m tests.faults --docs"
    assert report.markdown(ROWS, PAIRS) in text
