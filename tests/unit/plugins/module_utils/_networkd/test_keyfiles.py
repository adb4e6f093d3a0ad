# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import Request, Want
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd import keyfiles

from tests.unit.plugins.fake import FakeNode

PATH = "/etc/NetworkManager/system-connections/aidc-rail0.nmconnection"
TEXT = "# x\n[connection]\nid=aidc-rail0\ninterface-name=rail0\n\n[ethernet]\nmtu=4200\n"


def test_translate() -> None:
    assert keyfiles.translate(TEXT) == ("rail0", "[Link]\nMTUBytes=4200\n")
    assert keyfiles.translate("garbage") == ("", "[Link]\nMTUBytes=\n")


def test_mlx5_port_takes_the_mtu_that_rail_network_saved(node: FakeNode) -> None:
    node.networkd = "inactive"
    node.put(PATH, TEXT)
    node.put(PATH.replace("rail0", "rail1"), TEXT.replace("rail0", "rail1"))
    request = Request(tuple(Want(rail.pci, 4200) for rail in node.rails))
    result = configure(node.machine(), request, False)
    assert [command[0] for command in result["commands"]] == ["ip", "ip"]
    assert [entry["saved_mtu_bytes"] for entry in result["after"]] == [4200, 4200]
    assert configure(node.machine(), request, False)["changed"] is False
    other = Request((Want(node.rails[0].pci, 9000),))
    with pytest.raises(AidcError, match="that file is rail_network's: give both the same MTU"):
        configure(node.machine(), other, False)


@pytest.mark.parametrize("path", ["/etc/systemd/network/20-rail0.network.d/60-aidc-rail.conf",
                                  "/etc/systemd/network/05-aidc-rail0.network"])
def test_mlx5_port_does_not_fight_with_rail_network(node: FakeNode, path: str) -> None:
    if path.endswith(".network"):
        node.rails[0].network_file = path
    node.put(path, "[Link]\nMTUBytes=4200\n")
    result = configure(node.machine(), Request((Want(node.rails[0].pci, 4200),)), False)
    assert [command[0] for command in result["commands"]] == ["ip"]
    with pytest.raises(AidcError, match="that file is rail_network's: give both the same MTU"):
        configure(node.machine(), Request((Want(node.rails[0].pci, 9000),)), False)
