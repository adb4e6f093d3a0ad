# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import parse

from tests.unit.plugins.fake import DEVINFO

SAMPLES = Path(__file__).resolve().parents[5].parent / "shared" / "samples"


@pytest.mark.parametrize(("text", "name"), [("4: ACTIVE", "ACTIVE"), ("5: LinkUp", "LinkUp"), ("", None), ("4:", None)])
def test_numbered(text: str, name: str | None) -> None:
    assert parse.numbered(text) == name


@pytest.mark.parametrize(("rate", "state", "speed"), [
    ("400 Gb/sec (4X NDR)", "ACTIVE", 400.0), ("2.5 Gb/sec (1X SDR)", "ACTIVE", 2.5),
    # a RoCE port without carrier
    ("40 Gb/sec (4X QDR)", "DOWN", None), ("40 Gb/sec (4X QDR)", None, None), ("", "ACTIVE", None),
])
def test_speed(rate: str, state: str | None, speed: float | None) -> None:
    assert parse.speed_gbps(rate, state) == speed


def test_gids() -> None:
    zero = "0000:0000:0000:0000:0000:0000:0000:0000"
    assert not parse.is_gid_used(zero)
    assert not parse.is_gid_used(f"fe80{zero[4:]}")
    assert not parse.is_gid_used("garbage")
    ipv4 = parse.gid(3, "0000:0000:0000:0000:0000:ffff:c633:6401", "RoCE v2", "rail0")
    assert (ipv4.family, ipv4.address, ipv4.index) == ("ipv4", "198.51.100.1", 3)
    ipv6 = parse.gid(0, "fe80:0000:0000:0000:0000:00ff:fe00:0011", None, None)
    assert (ipv6.family, ipv6.address) == ("ipv6", "fe80::ff:fe00:11")


def test_devinfo() -> None:
    text = DEVINFO.format(hca="mlx5_0", mtu="4096 (5)") + DEVINFO.format(hca="rocep3s0f0", mtu="invalid MTU (0)")
    found = parse.devinfo(text)
    assert found["mlx5_0"] == parse.Devinfo("28.39.1002", "MT_0000000834", {1: 4096})
    assert found["rocep3s0f0"].active_mtu_bytes == {1: 0}


def test_devinfo_with_blanks_and_noise() -> None:
    text = "libibverbs: Warning: couldn't load driver\nstray\n" + DEVINFO.format(
        hca="mlx5_bond_0", mtu="1024 (3)").replace("\t", "        ")
    assert parse.devinfo(text)["mlx5_bond_0"].active_mtu_bytes == {1: 1024}


@pytest.mark.parametrize("text", [
    "", "\x00\x01 garbage : text\n", "No IB devices found\n",
    DEVINFO.format(hca="mlx5_0", mtu="jumbo"),
    DEVINFO.format(hca="mlx5_0", mtu="4096 (5)").split("active_mtu")[0],
    DEVINFO.format(hca="mlx5_0", mtu="4096 (5)").replace("port:\t1", "port:\tone"),
])
def test_devinfo_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse.devinfo(text)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="skipped: no folder of field samples beside the checkout")
def test_field_samples() -> None:
    found = parse.devinfo((SAMPLES / "ibv_devinfo-1.txt").read_text(encoding="utf-8"))
    assert {name: info.active_mtu_bytes[1] for name, info in found.items()} == {
        "mlx5_0": 1024, "mlx5_1": 1024, "mlx5_2": 4096}
    assert found["mlx5_2"].psid == "MT_0000000223"
    bond = parse.devinfo((SAMPLES / "ibv_devinfo-4.txt").read_text(encoding="utf-8"))
    assert bond["mlx5_bond_0"] == parse.Devinfo("28.39.1002", "MT_0000000834", {1: 4096})
    with pytest.raises(ValueError, match="no hca_id line"):
        parse.devinfo((SAMPLES / "ibv_devinfo-2.txt").read_text(encoding="utf-8"))
