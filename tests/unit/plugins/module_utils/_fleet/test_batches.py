# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections import Counter

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet.batches import BATCHES, batches
from hypothesis import given
from hypothesis import strategies as st

GB = [f"gb{number}" for number in range(1, 37)]


def test_one_of_each_class_then_a_tenth_then_the_rest() -> None:
    found = batches({"gb200": GB, "l40s": ["l1", "l2"], "epyc9754": []})
    assert [host for host, batch in found.items() if batch == "canary"] == ["gb1", "l1"]
    assert [host for host, batch in found.items() if batch == "tenth"] == ["gb2", "gb3", "gb4"]
    assert Counter(found.values()) == {"canary": 2, "tenth": 3, "rest": 33}


def test_named_canaries_stand_in_for_the_first_host_of_their_class_only() -> None:
    found = batches({"gb200": GB, "l40s": ["l1", "l2"]}, ["gb9", "gb7", "left-out-by-limit"])
    assert [host for host, batch in found.items() if batch == "canary"] == ["gb7", "gb9", "l1"]
    assert [host for host, batch in found.items() if batch == "tenth"] == ["gb1", "gb2", "gb3"]


def test_no_canaries() -> None:
    assert set(batches({"gb200": GB}, per_class=0, percent=0).values()) == {"rest"}
    assert set(batches({"gb200": GB[:1]}, percent=100).values()) == {"canary"}


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 99), unique=True, max_size=30)),
       st.integers(0, 3), st.integers(0, 100))
def test_every_host_is_in_one_batch(sizes: dict[str, list[int]], per_class: int, percent: int) -> None:
    classes = {name: [f"{name}{number}" for number in numbers] for name, numbers in sizes.items()}
    found = batches(classes, (), per_class, percent)
    assert sorted(found) == sorted(host for hosts in classes.values() for host in hosts)
    assert set(found.values()) <= set(BATCHES)
    for hosts in classes.values():
        counts = Counter(found[host] for host in hosts)
        assert counts["canary"] == min(per_class, len(hosts))
        assert counts["tenth"] <= len(hosts) * percent / 100
