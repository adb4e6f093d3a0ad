# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Ask networkd, read its files, wait for it."""
from __future__ import annotations

import posixpath

from .._host.errors import Problem
from .._host.files import read_text
from .._host.machine import Machine
from . import keyfiles, parse
from .model import DIRECTORIES, PENDING_FILE, ConfigFile, Link, Networkd, Saved

LIST = ("networkctl", "--json=short", "list")
UNIT = "systemd-networkd.service"
SETTLE_SECONDS = 30.0
POLL_SECONDS = 0.2
# A reload may return before networkd starts on a link: one good answer may still be the old state.
GOOD_ANSWERS = 2
_NO_CARRIER = {"off", "no-carrier", "dormant", "missing"}


def _dropins(machine: Machine, network_file: str) -> list[str]:
    """Drop-ins in reading order, with each name once: the directory of higher priority hides the others."""
    found: dict[str, str] = {}
    for directory in DIRECTORIES:
        folder = posixpath.join(directory, f"{posixpath.basename(network_file)}.d")
        real = machine.path(folder)
        # Like systemd: hidden files are none.
        for entry in real.glob("[!.]*.conf") if real.is_dir() else ():
            found.setdefault(entry.name, posixpath.join(folder, entry.name))
    return [found[name] for name in sorted(found)]


def read_saved(machine: Machine, network_file: str) -> Saved:
    """The files as they stand on disk. A link to /dev/null is read as empty, which is what it means."""
    files = []
    for path in [network_file, *_dropins(machine, network_file)]:
        text = read_text(machine.path(path))
        if text is not None:
            files.append(ConfigFile(path, text))
    return Saved(network_file, tuple(files))


def _list(machine: Machine) -> tuple[dict[str, Link], Problem | None]:
    result = machine.tool(*LIST)
    try:
        if result.state == "ok":
            return parse.links(result.stdout), None
        got = result.why()
    except ValueError as error:
        got = result.unreadable(error)
    hint = "systemd 250 or newer is needed; look at systemctl status systemd-networkd"
    return {}, Problem(" ".join(LIST), got, "its JSON output", hint)


def _unreadable(error: OSError) -> Problem:
    return Problem(str(error.filename), error.strerror or str(error), "a readable file", "run as root")


def gather(machine: Machine, netdevs: list[str]) -> Networkd:
    """State of networkd and what it has saved for these links."""
    # With the daemon stopped networkctl still exits 0, so ask systemd first.
    asked = machine.tool("systemctl", "is-active", UNIT)
    state = asked.stdout.strip() or asked.why()
    if state != "active":
        try:
            return Networkd(state, *keyfiles.read(machine, netdevs))
        except OSError as error:
            return Networkd(state, problem=_unreadable(error), unreadable=str(error.filename))
    links, problem = _list(machine)
    files = {links[name].network_file for name in netdevs if name in links}
    unreadable: str | None = None
    try:
        saved = {file: read_saved(machine, file) for file in sorted(filter(None, files))}
    except OSError as error:
        saved, problem, unreadable = {}, _unreadable(error), str(error.filename)
    return Networkd(state, links, saved, machine.path(PENDING_FILE).exists(), problem, unreadable)


def _settled(link: Link | None) -> bool:
    return link is not None and (link.admin_state == "configured" or link.operational_state in _NO_CARRIER)


def wait_configured(machine: Machine, netdevs: tuple[str, ...]) -> Problem | None:
    """Wait until networkd is done with the links; a link without carrier is as done as it can be."""
    deadline = machine.monotonic() + SETTLE_SECONDS
    good = 0
    while True:
        links, problem = _list(machine)
        waiting = [name for name in netdevs if not _settled(links.get(name))]
        good = 0 if waiting else good + 1
        if good >= GOOD_ANSWERS:
            return None
        failed = [name for name in waiting if name in links and links[name].admin_state == "failed"]
        if failed or machine.monotonic() >= deadline:
            break
        machine.sleep(POLL_SECONDS)
    if problem is not None:
        return problem
    states = ", ".join(f"{name} {links[name].admin_state if name in links else 'gone'}" for name in waiting)
    return Problem("links after networkctl reload", states or "no stable answer",
                   f"configured within {SETTLE_SECONDS:g} s", "look at networkctl status")
