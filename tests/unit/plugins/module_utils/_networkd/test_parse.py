# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd import parse


def test_links() -> None:
    links = parse.links('{"Interfaces":[{"Name":"lo","AdministrativeState":"unmanaged"},'
                        '{"Name":"rail0","AdministrativeState":"configured","OperationalState":"routable",'
                        '"NetworkFile":"/etc/systemd/network/20-rail0.network"}]}')
    assert (links["lo"].admin_state, links["lo"].network_file) == ("unmanaged", None)
    assert links["rail0"].network_file == "/etc/systemd/network/20-rail0.network"
    assert links["rail0"].operational_state == "routable"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"Interfaces":1}', '{"Interfaces":[1]}', '{"Interfaces":[{}]}',
                                  "systemd-networkd is not running"])
def test_no_links(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse.links(text)


@pytest.mark.parametrize(("text", "mtu"), [
    ("", None),
    ("[Match]\nName=x\nMTUBytes=9000\n", None),
    ("[Link]\nMTUBytes=4200\n", 4200),
    ("[Link]\n MTUBytes = 4200 \n", 4200),
    ("[Link]\nMTUBytes=4K\n", 4096),
    ("[Link]\nMTUBytes=4 K\n", 4096),
    ("[Link]\nMTUBytes=4200B\n", 4200),
    # the last one counts, also over two sections of the same name
    ("[Link]\nMTUBytes=1500\n[Network]\n[Link]\nMTUBytes=4200\n", 4200),
    # empty resets, a value that cannot be is ignored
    ("[Link]\nMTUBytes=4200\nMTUBytes=\n", 0),
    ("[Link]\nMTUBytes=4200\nMTUBytes=jumbo\n", 4200),
    ("[Link]\nMTUBytes=4200\nMTUBytes=60\n", 4200),
    ("[Link]\nMTUBytes=4200\nMTUBytes=5000000000\n", 4200),
    # there are no comments behind a value
    ("[Link]\nMTUBytes=4200 # jumbo\n", None),
    ("[Link]\n#MTUBytes=9000\n ;MTUBytes=9000\n", None),
    # continued lines, with a comment between
    ("[Link]\nMTUBytes= \\\n# note\n4200\n", 4200),
    ("[Link]\nMACAddress=02:00:00:00:00:01 \\\nMTUBytes=4200\n", None),
    # names are case sensitive
    ("[link]\nMTUBytes=4200\n[Link]\nmtubytes=4200\n", None),
    ("[Link\nMTUBytes=4200\n", None),
    ("MTUBytes=4200\n[Link]\nnonsense\n", None),
])
def test_mtu_of_one_file(text: str, mtu: int | None) -> None:
    assert parse.link_mtu(text) == mtu
