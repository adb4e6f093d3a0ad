# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is, by values: two pictures are equal when an undone fault has left nothing behind.

`tests/snapshot.py` counts a file by its change time; here a file that was changed and put back is the same again, and
so is a link that went and came back. The host runs this file (``python3 -``), so it needs the standard library alone.
"""
from __future__ import annotations

import glob
import hashlib
import json
import os
import subprocess
import sys
from typing import Any

FILES = ("/etc", "/var/lib/aidc", "/usr/libexec/aidc", "/run/aidc", "/run/systemd/network", "/run/systemd/system",
         "/run/netplan", "/run/NetworkManager/system-connections", "/run/NetworkManager/conf.d", "/usr/sbin",
         "/usr/bin")
# Time stamps, and what a login or a daemon writes for itself.
NOISE = ("/etc/.pwd.lock", "/etc/resolv.conf", "/etc/ld.so.cache", "/etc/NetworkManager/seen-bssids")
VALUES = (
    "/sys/class/infiniband/*/*", "/sys/class/infiniband/*/ports/1/*",
    "/sys/class/infiniband/*/ports/1/hw_counters/lifespan",
    "/sys/class/net/*/mtu", "/sys/class/net/*/carrier", "/sys/class/net/*/operstate", "/sys/class/net/*/flags",
    "/sys/bus/pci/devices/*/*", "/sys/kernel/debug/mlx5/*/cc_params/*", "/dev/dcbnl/*", "/dev/infiniband/ethtool",
    "/proc/sys/net/ipv4/conf/*/*", "/proc/sys/net/ipv6/conf/*/*",
)
# Programs are told by size and mode: their content is the packages'.
PROGRAMS = ("/usr/sbin", "/usr/bin")
SLOTS = 32
DROPPED = ("ifindex", "link_index", "valid_life_time", "preferred_life_time", "link_netnsid", "stats", "promiscuity",
           "allmulti")
COMMANDS = (("ip", "-4", "route", "show", "table", "all"), ("ip", "-6", "route", "show", "table", "all"),
            ("ip", "rule"), ("tc", "qdisc"),
            ("systemctl", "list-unit-files", "--no-legend", "--plain", "--type=service"),
            ("systemctl", "--failed", "--no-legend", "--plain"), ("systemctl", "is-active", "lldpad", "lldpd"))

Picture = dict[str, str]


def text_of(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(65536).decode("utf-8", "replace").strip()
    except OSError as error:
        return f"errno {error.errno}"


def files() -> Picture:
    found: Picture = {}
    for top in FILES:
        for base, folders, names in os.walk(top):
            for name in folders + names:
                path = os.path.join(base, name)
                if path in NOISE:
                    continue
                stat = os.lstat(path)
                what = f"{stat.st_mode:o} {stat.st_uid}:{stat.st_gid}"
                if os.path.islink(path):
                    what += f" -> {os.readlink(path)}"
                elif top in PROGRAMS:
                    what += f" {stat.st_size}"
                elif name in names and os.path.isfile(path):
                    with open(path, "rb") as file:
                        what += f" {hashlib.sha256(file.read()).hexdigest()}"
                found[path] = what
    return found


def values() -> Picture:
    found: Picture = {}
    for pattern in VALUES:
        for path in glob.glob(pattern):
            if os.path.isfile(path) and os.path.basename(path) not in ("uevent", "resource"):
                found[path] = text_of(path)
    for port in glob.glob("/sys/class/infiniband/*/ports/1"):
        for slot in range(SLOTS):
            names = (f"gids/{slot}", f"gid_attrs/types/{slot}", f"gid_attrs/ndevs/{slot}")
            found[f"{port} gid {slot}"] = " ".join(text_of(f"{port}/{name}") for name in names)
    return found


def cm_values() -> Picture:
    """RDMA-CM's defaults, which show in a folder that one makes for it (mlx5-roce 1.8)."""
    found: Picture = {}
    for device in os.listdir("/sys/class/infiniband") if os.path.isdir("/sys/class/infiniband") else ():
        folder = f"/sys/kernel/config/rdma_cm/{device}"
        try:
            os.mkdir(folder)
            for name in ("default_roce_mode", "default_roce_tos"):
                found[f"{folder} {name}"] = text_of(f"{folder}/ports/1/{name}")
            os.rmdir(folder)
        except OSError as error:
            found[folder] = f"errno {error.errno}"
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key not in DROPPED}
    if isinstance(value, list):
        return sorted((_plain(item) for item in value), key=json.dumps)
    return value


def outputs() -> Picture:
    found: Picture = {}
    done = subprocess.run(("ip", "-d", "-j", "addr"), capture_output=True, text=True, check=False)
    for link in json.loads(done.stdout or "[]"):
        found.update({f"link {link['ifname']} {key}": json.dumps(_plain(value), sort_keys=True)
                      for key, value in link.items() if key not in DROPPED})
    for argv in COMMANDS:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
        found.update({f"{' '.join(argv)}: {line}": "there" for line in lines if "expires" not in line})
    return found


def read() -> Picture:
    return {**files(), **values(), **cm_values(), **outputs()}


def difference(before: Picture, after: Picture) -> list[str]:
    """One line for each entry that came, went or changed."""
    return [f"{key}: {before.get(key, 'not there')[:200]} -> {after.get(key, 'not there')[:200]}"
            for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]


if __name__ == "__main__":
    json.dump(read(), sys.stdout)
