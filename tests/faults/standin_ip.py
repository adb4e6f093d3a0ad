#!/usr/bin/python3
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for ip on a kernel without bonds or VLANs, put into a host for the time of one row.

It makes a bridge where a bond or a VLAN is asked for, remembers it, and shows it as such: kind of the link and of its
members, parent of a VLAN [iproute2 ip/ipaddress.c, print_linkinfo; Linux bond_netlink.c, 8021q]. All else is the real
program. Standard library, Python 3.9 or later: it runs inside the hosts.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

REAL = "/usr/bin/ip"
KEPT = "/run/standin-ip.json"


def kept() -> dict[str, dict[str, Any]]:
    try:
        with open(KEPT, encoding="utf-8") as file:
            found: dict[str, dict[str, Any]] = json.load(file)
            return found
    except FileNotFoundError:
        return {}


def made(words: list[str]) -> tuple[str, dict[str, Any], list[str]] | None:
    """(name, what it is, the real command) of `link add [link P] [name] NAME [mtu N] type bond|vlan ...`."""
    if words[:2] != ["link", "add"] or "type" not in words:
        return None
    at = words.index("type")
    kind, rest = words[at + 1], words[2:at]
    if kind not in ("bond", "vlan"):
        return None
    options: dict[str, str] = {}
    while len(rest) > 1 and rest[0] in ("link", "name", "mtu"):
        options[rest[0]] = rest[1]
        rest = rest[2:]
    name = options.get("name") or rest.pop(0)
    if rest[:1] == ["mtu"]:
        options["mtu"] = rest[1]
    mtu = ["mtu", options["mtu"]] if "mtu" in options else []
    return name, {"kind": kind, "link": options.get("link")}, ["link", "add", name, *mtu, "type", "bridge"]


def shown(link: dict[str, Any], known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    about, info = known.get(link.get("ifname", "")), dict(link.get("linkinfo", {}))
    if about is not None:
        info = {"info_kind": about["kind"]}
        if about["link"]:
            link = {**link, "link": about["link"]}
    if known.get(link.get("master", ""), {}).get("kind") == "bond":
        info["info_slave_kind"] = "bond"
    return {**link, "linkinfo": info} if info else link


def main(argv: list[str]) -> int:
    known, words = kept(), [word for word in argv[1:] if not word.startswith("-")]
    new = made(words)
    if new is not None:
        known[new[0]] = new[1]
        with open(KEPT, "w", encoding="utf-8") as file:
            json.dump(known, file)
        return subprocess.run([REAL, *new[2]], check=False).returncode
    if "-j" not in argv or not {"addr", "link", "address"} & set(words[:1]):
        os.execv(REAL, argv)
    done = subprocess.run([REAL, *argv[1:]], stdout=subprocess.PIPE, text=True, check=False)
    try:
        links = [shown(link, known) for link in json.loads(done.stdout)]
    except ValueError:
        sys.stdout.write(done.stdout)
        return done.returncode
    print(json.dumps(links))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv))
