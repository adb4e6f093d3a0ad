# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a port's manager has saved, and what a carrier loss would cost."""
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fabric import model
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd.model import (
    ConfigFile,
    Link,
    Networkd,
    Saved,
)
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail.model import (
    Connection,
    NetworkManager,
    Node,
    Present,
)
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail.networkmanager import CONF, conf_text

NETWORKD, MANAGER = ["systemd-networkd"], ["NetworkManager"]
ETC, RUN = (f"/{folder}/NetworkManager/system-connections/r0.nmconnection" for folder in ("etc", "run"))
PROFILE = "[connection]\nid=r0\n[ethernet]\nmtu=4200\n[ipv4]\naddress1=192.0.2.1/24\n"


def networkd(path: str = "/etc/systemd/network/20-r0.network", *texts: str) -> Node:
    files = tuple(ConfigFile(f"{path}.{number}", text) for number, text in enumerate(texts))
    links = {"r0": Link("r0", "configured", network_file=path)}
    return Node(networkd=Networkd("active", links, {path: Saved(path, files)}))


def manager(path: str) -> Node:
    return Node(manager=NetworkManager(True, {"r0": ("connected", "r0")}, (Connection("r0", "u", "r0", path),)),
                files={path: Present(PROFILE, 0o600)})


@pytest.mark.parametrize(("texts", "wanted"), [
    (["[Network]\nAddress=192.0.2.1/24\n"], False), (["[Network]\nConfigureWithoutCarrier=yes\n"], True),
    (["[Network]\nConfigureWithoutCarrier=yes\n", "[Network]\nConfigureWithoutCarrier=no\n"], False),
    (["[Network]\nIgnoreCarrierLoss=yes\n"], True), (["[Network]\nIgnoreCarrierLoss=15s\n"], False),
    (["[Network]\nConfigureWithoutCarrier=yes\nIgnoreCarrierLoss=no\n"], False),
    (["[Link]\nConfigureWithoutCarrier=yes\n"], False),
])
def test_networkd_and_the_carrier(texts: list[str], wanted: bool) -> None:
    saved = model.saved(networkd("/etc/systemd/network/20-r0.network", *texts), "r0", NETWORKD, {})
    assert saved is not None and saved["ignore_carrier"] is wanted


def test_networkd_saves_mtu_and_addresses() -> None:
    node = networkd("/etc/x.network", "[Link]\nMTUBytes=1500\n[Network]\nAddress=192.0.2.1/24\n",
                    "[Link]\nMTUBytes=4200\n")
    assert model.saved(node, "r0", NETWORKD, {}) == {"mtu_bytes": 4200, "addresses": ["192.0.2.1/24"],
                                                     "ignore_carrier": False}


@pytest.mark.parametrize(("confs", "wanted"), [
    ({}, False), ({CONF: conf_text(["r0"])}, True), ({CONF: conf_text(["r1"])}, False),
    ({"/etc/NetworkManager/conf.d/mine.conf": "[device-x]\nignore-carrier=yes\n"}, None),
])
def test_networkmanager_and_the_carrier(confs: dict[str, str], wanted: bool | None) -> None:
    assert model.saved(manager(ETC), "r0", MANAGER, confs) == {
        "mtu_bytes": 4200, "addresses": ["192.0.2.1/24"], "ignore_carrier": wanted}


@pytest.mark.parametrize("owners", [[], ["ifupdown"], [*NETWORKD, *MANAGER]])
def test_without_one_manager_nobody_can_say(owners: list[str]) -> None:
    assert model.saved(manager(ETC), "r0", owners, {}) is None


@pytest.mark.parametrize(("node", "owners", "wanted"), [
    (manager(ETC), MANAGER, None), (manager(RUN), MANAGER, RUN), (manager(RUN), NETWORKD[:0], None),
    (manager("/run/NetworkManager/system-connections/netplan-r0.nmconnection"), MANAGER, None),
    (networkd(), NETWORKD, None), (networkd("/run/systemd/network/10-netplan-r0.network"), NETWORKD, None),
    (networkd("/run/systemd/network/70-r0.network"), NETWORKD, "/run/systemd/network/70-r0.network"),
])
def test_files_that_are_gone_after_a_boot(node: Node, owners: list[str], wanted: str | None) -> None:
    assert model.volatile(node, "r0", owners) == wanted


@pytest.mark.parametrize(("text", "wanted"), [
    (None, (False, None, None)), ("", (True, None, "an empty file")), ("{", (True, None, "no JSON")),
    ("[]", (True, None, "schema_version None")), ('{"schema_version": true}', (True, None, "schema_version True")),
    ('{"schema_version": 1, "sections": {}}', (True, 1, None)), ('{"schema_version": 9}', (True, 9, None)),
])
def test_intent(text: str | None, wanted: tuple[t.Any, ...]) -> None:
    found = model.intent(text)
    assert (found["present"], found["schema_version"]) == wanted[:2]
    assert found["problem"] is None if wanted[2] is None else str(found["problem"]).startswith(wanted[2])
