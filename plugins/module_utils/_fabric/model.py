# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What the audit wants to know of a port's manager: who it is, what it has saved, what a carrier loss costs. Pure."""
from __future__ import annotations

import json
import typing as t

from .._networkd.model import Saved
from .._networkd.parse import assignments
from .._networkd.plan import is_netplan
from .._rail import detect
from .._rail.model import Node
from .._rail.networkd import stanza as networkd_stanza
from .._rail.networkmanager import CONF, FOLDER, ignored
from .._rail.networkmanager import stanza as profile_stanza

_TRUE = {"yes", "true", "1", "on", "y", "t"}
_RUN = "/run/"
UNIT = "aidc-fabric.service"
INTENT = "/etc/aidc/intent.json"


def profile(node: Node, netdev: str) -> str | None:
    """File of NetworkManager's active profile of the port."""
    name = node.manager.devices.get(netdev, ("", ""))[1]
    return next((one.path for one in node.manager.connections if one.device == netdev and one.name == name), None)


def volatile(node: Node, netdev: str, owners: t.Sequence[str]) -> str | None:
    """A file that is gone after a boot; netplan's are made again from its own."""
    paths = []
    if "systemd-networkd" in owners:
        path = node.networkd.links[netdev].network_file or ""
        paths += [] if is_netplan(path) else [path]
    if "NetworkManager" in owners:
        path = profile(node, netdev) or ""
        paths += [] if path.startswith(detect.NM_NETPLAN) else [path]
    return next((path for path in paths if path.startswith(_RUN)), None)


def _networkd_ignores(saved: Saved) -> bool:
    """ConfigureWithoutCarrier implies IgnoreCarrierLoss [systemd.network(5)]; a time span is a delay, not a no."""
    found = {"ConfigureWithoutCarrier": "", "IgnoreCarrierLoss": ""}
    for file in saved.files:
        for section, key, value in assignments(file.text):
            if section == "Network" and key in found:
                found[key] = value.lower()
    loss = found["IgnoreCarrierLoss"]
    return loss in _TRUE or (not loss and found["ConfigureWithoutCarrier"] in _TRUE)


def _manager_ignores(netdev: str, confs: t.Mapping[str, str]) -> bool | None:
    """None: a file that is not ours speaks of it, for ports that only NetworkManager can match."""
    if netdev in ignored(confs.get(CONF)):
        return True
    return None if any("ignore-carrier" in text for path, text in confs.items() if path != CONF) else False


def saved(node: Node, netdev: str, owners: t.Sequence[str], confs: t.Mapping[str, str]) -> dict[str, t.Any] | None:
    """MTU, addresses and carrier as the port's one manager has them on disk; None where nobody can say."""
    files = node.networkd.of(netdev)
    if owners == ["systemd-networkd"] and files is not None:
        stanza = networkd_stanza(files.files)
        return {"mtu_bytes": stanza.mtu_bytes, "addresses": list(stanza.addresses),
                "ignore_carrier": _networkd_ignores(files)}
    text = node.text(profile(node, netdev) or "")
    if owners == ["NetworkManager"] and text is not None:
        stanza = profile_stanza(text, False)
        return {"mtu_bytes": stanza.mtu_bytes, "addresses": list(stanza.addresses),
                "ignore_carrier": _manager_ignores(netdev, confs)}
    return None


def wanted_files(node: Node, netdevs: t.Iterable[str]) -> list[str]:
    """Profiles to be read."""
    found = [profile(node, netdev) for netdev in netdevs]
    return [path for path in found if path and path.startswith((FOLDER, _RUN))]


def intent(text: str | None) -> dict[str, t.Any]:
    """Whether the host's intent file is there, and can be read."""
    if text is None:
        return {"present": False, "schema_version": None, "problem": None}
    found: dict[str, t.Any] = {"present": True, "schema_version": None, "problem": None}
    try:
        data = json.loads(text)
    except ValueError as error:
        return {**found, "problem": f"no JSON ({error})" if text.strip() else "an empty file"}
    version = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(version, bool) or not isinstance(version, int):
        return {**found, "problem": f"schema_version {version!r}"}
    return {**found, "schema_version": version}
