# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import socket

from hypothesis import given
from hypothesis import strategies as st

from lab.hardware import gids

MAC = "b8:3f:d2:00:00:30"
DEFAULT = "fe80:0000:0000:0000:ba3f:d2ff:fe00:0030"


def v4(text: str) -> bytes:
    return socket.inet_pton(socket.AF_INET, text)


def v6(text: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6, text)


def table(length: int = gids.LENGTH) -> gids.GidTable:
    made = gids.GidTable(length)
    made.set_default(MAC, 5)
    return made


def shown(made: gids.GidTable) -> list[tuple[int, str, str]]:
    return [(index, gids.groups(entry.gid), entry.type) for index, entry in made.used()]


def test_defaults_need_no_address() -> None:
    assert shown(table()) == [(0, DEFAULT, "IB/RoCE v1"), (1, DEFAULT, "RoCE v2")]


def test_ipv4_is_mapped_and_takes_v1_then_v2() -> None:
    made = table()
    made.add(v4("192.0.2.6"), 5)
    assert shown(made)[2:] == [(2, "0000:0000:0000:0000:0000:ffff:c000:0206", "IB/RoCE v1"),
                               (3, "0000:0000:0000:0000:0000:ffff:c000:0206", "RoCE v2")]


def test_eui64_link_local_takes_no_second_pair() -> None:
    made = table()
    made.add(v6("fe80::ba3f:d2ff:fe00:30"), 5)
    assert len(made.used()) == 2
    made.remove(v6("fe80::ba3f:d2ff:fe00:30"), 5)
    assert len(made.used()) == 2


def test_privacy_link_local_moves_ipv4_to_four() -> None:
    """Sample show_gids-1: the IPv4 RoCE v2 GID is index 5."""
    made = table()
    made.add(v6("fe80::1234"), 5)
    made.add(v4("192.0.2.6"), 5)
    assert shown(made)[5] == (5, "0000:0000:0000:0000:0000:ffff:c000:0206", "RoCE v2")


def test_freed_slots_are_used_again_in_order() -> None:
    made = table()
    for last in (1, 2, 3):
        made.add(v4(f"192.0.2.{last}"), 5)
    made.remove(v4("192.0.2.1"), 5)
    made.remove(v4("192.0.2.3"), 5)
    made.add(v4("192.0.2.9"), 5)
    made.add(v4("192.0.2.8"), 5)
    ends = [(index, gid[-4:]) for index, gid, _type in shown(made)][2:]
    assert ends == [(2, "0209"), (3, "0209"), (4, "0202"), (5, "0202"), (6, "0208"), (7, "0208")]


def test_the_same_address_on_another_netdev_is_another_gid() -> None:
    made = table()
    made.add(v6("fe80::ba3f:d2ff:fe00:30"), 9)
    assert [entry.ndev for _index, entry in made.used()] == [5, 5, 9, 9]
    made.remove_ndev(9)
    assert len(made.used()) == 2


def test_events_repeated_or_unknown_change_nothing() -> None:
    made = table()
    made.add(v4("192.0.2.1"), 5)
    made.add(v4("192.0.2.1"), 5)
    made.remove(v4("192.0.2.7"), 5)
    made.remove(v4("192.0.2.1"), 6)
    assert len(made.used()) == 4


def test_full_table_drops_the_rest() -> None:
    made = table(5)
    made.add(v4("192.0.2.1"), 5)
    made.add(v4("192.0.2.2"), 5)
    assert [entry.type for _index, entry in made.used()][-2:] == ["RoCE v2", "IB/RoCE v1"]
    assert len(made.slots) == 5


def test_clear_empties_the_defaults_too() -> None:
    made = table()
    made.clear()
    assert made.used() == [] and len(made.slots) == 255


def test_resync_keeps_slots_of_what_is_still_there() -> None:
    made = table()
    for last in (1, 2, 3):
        made.add(v4(f"192.0.2.{last}"), 5)
    made.resync([(v4("192.0.2.8"), 5), (v4("192.0.2.3"), 5)])
    ends = [(index, gid[-4:]) for index, gid, _type in shown(made)][2:]
    assert ends == [(2, "0208"), (3, "0208"), (6, "0203"), (7, "0203")]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=40))
def test_any_history(history: list[tuple[bool, int]]) -> None:
    made, present = table(), set()
    for new, last in history:
        address = v4(f"192.0.2.{last}")
        if new:
            made.add(address, 5)
            present.add(address)
        else:
            made.remove(address, 5)
            present.discard(address)
        entries = [entry for _index, entry in made.used()][2:]
        assert len(entries) == len(set(entries)) == 2 * len(present)
        assert {entry.gid[12:] for entry in entries} == present
        assert made.slots[0] is not None and made.slots[1] is not None
