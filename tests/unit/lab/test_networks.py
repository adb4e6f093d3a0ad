# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import configparser

import pytest
import yaml

from lab import networks
from lab.personas import Owner

PORTS = [networks.Port("eth0", "192.0.2.7/24", None), networks.Port("enp3s0f0np0", None, 0)]
OWNERS: tuple[Owner, ...] = ("networkd", "netplan", "networkmanager")


@pytest.mark.parametrize("owner", OWNERS)
def test_rails_have_no_address_no_mtu_and_do_not_ignore_the_carrier(owner: Owner) -> None:
    text = "\n".join(content for _path, content, _mode in networks.files(owner, PORTS))
    for port in PORTS:
        assert port.interface in text
    assert text.count("/24") == 1
    assert "192.0.2.7/24" in text
    assert "mtu" not in text.lower()
    assert text.lower().count("carrier") == 1
    assert networks.PROVISIONED in text


def test_netplan_file_is_readable_by_root_alone_and_sound() -> None:
    (path, content, mode), = networks.files("netplan", PORTS)
    assert (path, mode) == ("etc/netplan/50-cloud-init.yaml", 0o600)
    ethernets = yaml.safe_load(content)["network"]["ethernets"]
    assert {name: entry.get("addresses") for name, entry in ethernets.items()} == {
        "eth0": ["192.0.2.7/24"], "enp3s0f0np0": None}


def test_keyfiles_are_readable_by_root_alone_and_sound() -> None:
    """NetworkManager drops others without a word (host-setup.md 1.4)."""
    found = networks.files("networkmanager", PORTS)
    keyfiles = {path: (content, mode) for path, content, mode in found if path.endswith(".nmconnection")}
    assert len(keyfiles) == 2
    for content, mode in keyfiles.values():
        parser = configparser.ConfigParser()
        parser.read_string(content)
        assert mode == 0o600
        assert parser["connection"]["interface-name"] in content
        assert parser["ipv6"]["addr-gen-mode"] == "stable-privacy"
    by_name = {path.rpartition("/")[2]: content for path, (content, _mode) in keyfiles.items()}
    assert "method=manual\naddress1=192.0.2.7/24\n" in by_name["eth0.nmconnection"]
    assert "method=disabled\n" in by_name["enp3s0f0np0.nmconnection"]


def test_networkd_names_sort_management_first() -> None:
    assert [path for path, _content, _mode in networks.files("networkd", PORTS)] == [
        "etc/systemd/network/10-eth0.network", "etc/systemd/network/20-enp3s0f0np0.network"]
