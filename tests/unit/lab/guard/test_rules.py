# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno

import pytest

from lab.guard import rules


@pytest.mark.parametrize(("data", "text", "used"), [
    # (written, then read), each as tried on 6.18 with vm.swappiness
    (b"61\n", "61\n", 3), (b"61", "61\n", 2), (b" 61", "61\n", 3), (b"0x3d", "61\n", 4), (b"075", "61\n", 3),
    (b"61 70\n", "61\n", 3), (b"61  \n", "61\n", 5), (b"0", "0\n", 1), (b"200", "200\n", 3), (b"", "60\n", 0),
])
def test_number(data: bytes, text: str, used: int) -> None:
    assert rules.store("vm/swappiness", "60\n", data) == rules.Taken(text, used)


@pytest.mark.parametrize("data", [b"abc", b"201", b"-1", b"\n", b"60x", b"60,", b"99999999999", b"60\0", b"08", b"0x",
                                  b"- 1", b"+1", b"1.5"])
def test_refused_number(data: bytes) -> None:
    with pytest.raises(OSError) as caught:
        rules.store("vm/swappiness", "60\n", data)
    assert caught.value.errno == errno.EINVAL


def test_vector_takes_fewer_numbers_and_leaves_more() -> None:
    assert rules.store("kernel/printk", "4\t4\t1\t7\n", b"3") == rules.Taken("3\t4\t1\t7\n", 1)
    assert rules.store("kernel/printk", "4\t4\t1\t7\n", b"1 2 3 4 9\n") == rules.Taken("1\t2\t3\t4\n", 8)
    with pytest.raises(OSError):
        rules.store("kernel/printk", "4\t4\t1\t7\n", b"3 x")


@pytest.mark.parametrize(("key", "current", "good", "bad"), [
    ("kernel/panic", "0", -1, 2**31), ("kernel/panic", "0", 2**31 - 1, -2**31 - 1),
    ("vm/nr_hugepages", "0", 2**40, -1), ("kernel/unknown", str(2**40), 2**63, -1),
    ("net/core/rmem_max", "212992", 2304, 2303), ("net/ipv4/tcp_mem", "1 2 3", 2**33, 2**64),
])
def test_limits(key: str, current: str, good: int, bad: int) -> None:
    assert rules.store(key, current, str(good).encode()).text.split()[0] == str(good)
    with pytest.raises(OSError):
        rules.store(key, current, str(bad).encode())


def test_texts_are_one_line_and_end_where_the_kernel_cuts() -> None:
    assert rules.store("kernel/core_pattern", "core\n", b"|/bin/x %p\nmore\n") == rules.Taken("|/bin/x %p\n", 16)
    assert rules.store("kernel/core_pattern", "7\n", b"c" * 200).text == "c" * 127 + "\n"
    assert rules.store("kernel/unknown", "some text\n", b"12\n").text == "12\n"
    assert rules.store("net/core/default_qdisc", "pfifo_fast\n", b"fq\n").text == "fq\n"
    with pytest.raises(FileNotFoundError):
        rules.store("net/core/default_qdisc", "pfifo_fast\n", b"nosuch\n")


def test_coupled_keys_are_pairs() -> None:
    assert all(rules.COUPLED[rules.COUPLED[key]] == key for key in rules.COUPLED)
