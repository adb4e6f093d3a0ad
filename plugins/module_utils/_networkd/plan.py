# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What is saved for a link, and what our drop-in would change. Pure."""
from __future__ import annotations

import posixpath

from .._host.errors import Problem
from .model import DIRECTORIES, DROPIN_NAME, HEADER, RAIL_DROPIN, RAIL_FILE, ConfigFile, Networkd, Saved
from .parse import link_mtu


def effective_mtu(saved: Saved | None) -> tuple[int | None, str | None]:
    """MTU in bytes that networkd sets for the file's links (None: it sets none), and the file that decides it."""
    value, path = 0, None
    for file in saved.files if saved else ():
        here = link_mtu(file.text)
        if here is not None:
            value, path = here, file.path
    return value or None, path


def dropin_path(network_file: str, name: str = DROPIN_NAME) -> str:
    return posixpath.join(DIRECTORIES[0], f"{posixpath.basename(network_file)}.d", name)


def dropin_text(mtu_bytes: int) -> str:
    return f"{HEADER}\n[Link]\nMTUBytes={mtu_bytes}\n"


def with_file(saved: Saved, path: str, text: str) -> Saved:
    """The files as they stand once this drop-in is written.

    Drop-ins of all directories are read in the order of their names; of two with the same name only the one
    in the directory of higher priority counts, and ours is in the highest [systemd.network(5)].
    """
    name = posixpath.basename(path)
    main, others = saved.files[:1], [f for f in saved.files[1:] if posixpath.basename(f.path) != name]
    dropins = sorted([*others, ConfigFile(path, text)], key=lambda file: posixpath.basename(file.path))
    return Saved(saved.network_file, (*main, *dropins))


def with_dropin(saved: Saved, mtu_bytes: int) -> Saved:
    return with_file(saved, dropin_path(saved.network_file), dropin_text(mtu_bytes))


def is_netplan(network_file: str) -> bool:
    """netplan writes /run/systemd/network/10-netplan-ID.network."""
    return network_file.startswith("/run/systemd/network/") and "-netplan-" in posixpath.basename(network_file)


def check_dropin(saved: Saved, mtu_bytes: int, netdev: str) -> Problem | None:
    """Why writing our drop-in would be wrong or in vain."""
    path = dropin_path(saved.network_file)
    wanted = f"MTUBytes={mtu_bytes} saved in {path}"
    if is_netplan(saved.network_file):
        return Problem(f"saved MTU of {netdev}", f"netplan as the owner ({saved.network_file})", wanted,
                       "let rail_network save it, which knows netplan, or use persistent: false")
    if not saved.network_file.endswith(".network") or posixpath.basename(saved.network_file).startswith(RAIL_FILE):
        value, _decider = effective_mtu(saved)
        return Problem(f"saved MTU of {netdev}", f"{value} in {saved.network_file}", str(mtu_bytes),
                       "that file is rail_network's: give both the same MTU")
    for file in saved.files:
        if file.path == path and not file.text.startswith(HEADER):
            hint = "move it away; only files with our header are rewritten"
            return Problem(path, "a file that is not ours", wanted, hint)
    value, decider = effective_mtu(with_dropin(saved, mtu_bytes))
    if value != mtu_bytes:
        got = f"MTUBytes={value or ''} in {decider}, which is read after {DROPIN_NAME}"
        hint = "remove MTUBytes= from that file, or rename it to sort earlier"
        if posixpath.basename(str(decider)) == RAIL_DROPIN:
            hint = "that file is rail_network's: give both the same MTU"
        return Problem(f"saved MTU of {netdev}", got, wanted, hint)
    return None


def check_owner(networkd: Networkd, netdev: str) -> Problem | None:
    """Why nothing can be saved for this link, whatever the value."""
    wanted = "a .network file of systemd-networkd that governs it"
    if networkd.problem is not None:
        return networkd.problem
    saved = networkd.of(netdev)
    if not networkd.active and (saved is None or saved.network_file.endswith(".network")):
        return Problem("systemd-networkd", networkd.state, "active",
                       "let rail_network save it, which knows other managers, or use persistent: false")
    if saved is None:
        link = networkd.links.get(netdev)
        state = link.admin_state if link is not None and link.admin_state else "not known to networkd"
        hint = f"create {DIRECTORIES[0]}/20-{netdev}.network with [Match] Name={netdev}, or use persistent: false"
        return Problem(f"saved MTU of {netdev}", f"no .network file (networkd: {state})", wanted, hint)
    return None
