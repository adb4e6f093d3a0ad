# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many launches under one key, with a launcher that is a script: order, limits, and that none disturbs another."""
from __future__ import annotations

import dataclasses
import os
import threading
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access import io as access_io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access import processes
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access.io import Store
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access.model import Record
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl import batch, launch
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.batch import Answer, Batch, Item, ready
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.launch import Host, Job
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.run import Criteria

RUN = f"batch-{os.getpid()}"
# A launcher that takes its host file for what it is told, and prints what two ranks of each host would.
MPIRUN = r"""#!/bin/sh
[ "$1" = --version ] && { echo 'mpirun (Open MPI) 5.0.7'; exit 0; }
file=; for word; do [ "$last" = --hostfile ] && file=$word; last=$word; done
names=$(sed 's/192.0.2.\([0-9]*\) .*/node\1/' "$file")
part=${file##*hosts-}
echo "start $part $@MARK@" >> "@PLACE@/events"
[ -e "@PLACE@/hang-$part" ] && { trap '' TERM; sleep 60; sleep 60; }
sleep 0.2
ranks=$(for name in $names; do echo "$name 0"; echo "$name 1"; done)
cell="157.29    6.67   10.00"; busbw=10; [ -e "@PLACE@/slow-$part" ] && cell="314.57    3.33    5.00" busbw=5
echo "# Collective test starting: all_reduce_perf"
echo "# nThread 1 nGpus 2 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 1 iters: 3 validation: 1"
echo "#"; echo "# Using devices"
echo "$ranks" | { rank=0; while read name device; do
  printf '#  Rank  %d Group  0 Pid    100 on      %s device  %d [0000:01:00] GPU\n' $rank $name $device
  rank=$((rank + 1)); done; }
cat <<END
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1   $cell       0   $cell       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : $busbw
#
END
echo "end $part" >> "@PLACE@/events"
[ -e "@PLACE@/stay-$part" ] && { trap '' TERM; sleep 60; sleep 60; }
exit 0
"""
SSH = """#!/bin/sh
echo "$3: $(cat | grep -c signal)" >> @PLACE@/ssh-calls
"""


def executable(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@dataclasses.dataclass
class Place:
    path: Path
    store: Store
    pool: Job

    def item(self, part: str, *numbers: int, seconds: float = 20, needs: str = "") -> Item:
        hosts = tuple(self.pool.hosts[number - 1] for number in numbers)
        return Item(dataclasses.replace(self.pool, hosts=hosts, part=part), Criteria(10.0), seconds, needs)

    def run(self, *items: Item, parallel: int = 8) -> dict[str, dict[str, t.Any]]:
        made = Batch(self.pool, items, self.store, Machine(), parallel, grace_seconds=0.3)
        return {answer.item.id: answer.as_dict() for answer in made.run()[1]}

    def events(self) -> list[str]:
        return (self.path / "events").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(batch, "refuse_root", lambda: None)
    monkeypatch.setattr(launch, "MARK_VARIABLE", processes.MARK_VARIABLE)
    executable(tmp_path / "ssh", SSH.replace("@PLACE@", str(tmp_path)))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    store = Store(tmp_path)
    store.prepare()
    here, folder = access_io.here(), store.run_dir(RUN)
    access_io.own_directory(folder)
    store.write_record(Record(RUN, "node1", "alice", here.now + 60, here.host, here.boot_id))
    (folder / access_io.KEY).write_text("key", encoding="utf-8")
    hosts = tuple(Host(f"node{i}", f"192.0.2.{i}", host_keys=("ssh-ed25519 AAAA",)) for i in range(1, 7))
    text = MPIRUN.replace("@PLACE@", str(tmp_path)).replace("@MARK@", processes.MARK_VARIABLE)
    pool = Job(hosts, RUN, str(folder), "ops", 2, executable(tmp_path / "all_reduce_perf", "#!/bin/sh\n"),
               executable(tmp_path / "mpirun", text), min_bytes="1M", max_bytes="1M", network="192.0.2.0/24")
    return Place(tmp_path, store, pool)


def test_runs_that_share_no_host_go_together_and_the_head_may_be_left_out(place: Place) -> None:
    found = place.run(place.item("a", 1, 2), place.item("b", 3, 4), place.item("c", 5, 6))
    assert [one["verdict"]["state"] for one in found.values()] == ["PASS"] * 3, found
    assert found["b"]["hosts"] == ["node3", "node4"] and found["b"]["verdict"]["ratio"] == 1.0
    events = place.events()
    assert sorted(event.split()[1] for event in events[:3]) == ["a", "b", "c"], "all three started before one ended"
    # Each has a mark of its own, which tells the run it belongs to.
    assert f"start b {RUN}.b" in events
    assert found["a"]["log"] == "" and not (place.path / "ssh-calls").exists()
    record = place.store.record(RUN)
    assert record is not None and not record.finished and record.pid is None, "alive until the next batch"
    assert sorted(path.name for path in place.store.run_dir(RUN).iterdir()) == [
        "hosts", "id", "known_hosts", "run.json", "ssh_config", "tmp"]


def test_runs_on_one_host_wait_in_order_and_the_bound_holds(place: Place) -> None:
    place.run(place.item("a", 1, 2), place.item("b", 2, 3), place.item("c", 3, 4), place.item("d", 5, 6), parallel=1)
    assert [event.split()[:2] for event in place.events()] == [
        [word, part] for part in "abcd" for word in ("start", "end")]


def test_a_hang_is_ended_alone_and_cleared_on_its_hosts_and_what_needs_it_is_not_tried(place: Place) -> None:
    (place.path / "hang-a").touch()
    (place.path / "slow-b").touch()
    found = place.run(place.item("a", 1, 2, seconds=1), place.item("a-r0", 1, 2, needs="a"),
                      place.item("b", 3, 4), place.item("b-r0", 3, 4, needs="b"))
    assert {part: (one["verdict"] or {}).get("state") for part, one in found.items()} == {
        "a": "HANG", "a-r0": None, "b": "SLOW", "b-r0": "PASS"}
    assert found["b"]["verdict"]["ratio"] == 0.5
    # Not on the head, where other runs are led from.
    assert (place.path / "ssh-calls").read_text(encoding="utf-8").split() == ["192.0.2.2:", "3"]
    assert processes.find(lambda mark: mark.startswith(RUN)) == []


def test_a_launcher_that_stays_after_a_whole_run_is_told_from_a_run_that_hangs(place: Place) -> None:
    (place.path / "stay-a").touch()
    (place.path / "hang-b").touch()
    found = place.run(place.item("a", 1, 2, seconds=3), place.item("b", 3, 4, seconds=3), place.item("c", 5, 6))
    assert {part: (one["verdict"]["state"], one["whole"]) for part, one in found.items()} == {
        "a": ("HANG", True), "b": ("HANG", False), "c": ("PASS", True)}


def test_a_signal_ends_all_of_them(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    started = threading.Event()

    def one(item: Item) -> Answer:
        started.set()
        assert stop.wait(10)
        return Answer(item)

    def told(*_arguments: t.Any, **_more: t.Any) -> t.Any:
        assert started.wait(10)
        raise KeyboardInterrupt

    stop = threading.Event()
    monkeypatch.setattr(batch, "wait", told)
    with pytest.raises(KeyboardInterrupt):
        batch.run_all([place.item("a", 1, 2)], one, 2, stop)
    assert stop.is_set()


def test_a_stopped_launch_ends_at_once(place: Place) -> None:
    (place.path / "hang-a").touch()
    made = Batch(place.pool, [place.item("a", 1, 2, seconds=60)], place.store, Machine(), 2, grace_seconds=0.3)
    made.stop.set()
    _commands, (answer,) = made.run()
    assert answer.report is not None and answer.report.verdict is not None
    assert answer.report.verdict.state not in ("PASS", "SLOW")
    assert processes.find(lambda mark: mark.startswith(RUN)) == []


def test_nothing_overtakes_on_a_host(place: Place) -> None:
    items = [place.item("a", 1, 2), place.item("b", 2, 3), place.item("c", 3, 4), place.item("d", 5, 6)]
    assert [item.id for item in ready(items, [], 8)] == ["a", "d"]
    assert [item.id for item in ready(items, ["node1"], 8)] == ["d"]
    assert [item.id for item in ready(items, [], 1)] == ["a"]


def test_what_cannot_be_started_is_refused_before_anything_is(place: Place) -> None:
    for items in ([place.item("a", 1), place.item("a", 2)], [place.item("a b", 1)],
                  [place.item("a", 1, needs="z")], [place.item("a", 1), place.item("b", 2, needs="a")],
                  [place.item("a", 1, seconds=0)]):
        with pytest.raises(AidcError):
            place.run(*items)
    with pytest.raises(AidcError, match="parallel"):
        place.run(place.item("a", 1), parallel=0)
    (place.store.run_dir(RUN) / access_io.KEY).unlink()
    with pytest.raises(AidcError, match="no key"):
        place.run(place.item("a", 1, 2))
    assert not (place.path / "events").exists()


def test_a_missing_program_is_named(place: Place) -> None:
    item = place.item("a", 1, 2)
    item = dataclasses.replace(item, job=dataclasses.replace(item.job, binary="alltoall_perf_x"))
    with pytest.raises(AidcError, match="alltoall_perf_x"):
        place.run(item)
