# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What Slurm's and systemd's tools print of a cluster and its daemons. Pure.

Formats: SchedMD slurm-24.11 src/api/{partition_info,reservation_info,config_info}.c and src/scontrol/scontrol.c.
"""
from __future__ import annotations

import hashlib
import re
import typing as t

# Values of `scontrol show config` that change without anybody changing the configuration, and the host's own ones.
VOLATILE = frozenset({"BOOT_TIME", "NEXT_JOB_ID", "HASH_VAL", "SLURM_CONF", "SlurmdSpoolDir"})
_PAIR = re.compile(r"(\S+?)=(.*?)(?=\s+[A-Za-z][\w/]*=|\s*$)")
_NUMBERS = {"TotalNodes": "nodes_total", "TotalCPUs": "cpus_total"}
_NOTHING = ("(null)", "None", "N/A", "NONE")


def version(text: str) -> str:
    """``slurm 24.11.5``, of Debian ``slurm-wlm 22.05.8``; ValueError for anything else."""
    found = re.fullmatch(r"slurm(?:-wlm)? (\d+\.\d+\.\d+\S*)", text.strip())
    if not found:
        raise ValueError("no line with slurm and its version")
    return found[1]


def pings(text: str) -> list[dict[str, t.Any]]:
    """``scontrol ping``: primary, backups and whether they answer."""
    found = [{"role": role, "host": host, "up": word == "UP"} for role, host, word in re.findall(
        r"(?m)^Slurmctld\(([\w ]+)\) at (\S+) is (UP|DOWN)", text)]
    if not found:
        raise ValueError("no line 'Slurmctld(primary) at HOST is UP'")
    return found


def _records(text: str, first: str) -> list[dict[str, str]]:
    found = []
    for line in text.splitlines():
        if line.startswith(f"{first}="):
            found.append({key: "" if value in _NOTHING else value for key, value in _PAIR.findall(line)})
        elif line.strip() and not line.startswith("No "):
            raise ValueError(f"got the line {line[:80]!r}, wanted {first}=")
    return found


def partitions(text: str) -> list[dict[str, t.Any]]:
    """``scontrol -o show partition``."""
    return [{
        "name": one["PartitionName"], "state": one.get("State", ""), "default": one.get("Default") == "YES",
        "nodes": one.get("Nodes", ""), "max_time": one.get("MaxTime", ""),
        **{name: int(one[key]) if one.get(key, "").isdigit() else None for key, name in _NUMBERS.items()},
    } for one in _records(text, "PartitionName")]


def reservations(text: str) -> list[dict[str, t.Any]]:
    """``scontrol -o show reservation``; times as Slurm prints them, the host's own."""
    return [{
        "name": one["ReservationName"], "state": one.get("State", ""), "nodes": one.get("Nodes", ""),
        "start": one.get("StartTime", ""), "end": one.get("EndTime", ""),
        "flags": [flag for flag in one.get("Flags", "").split(",") if flag], "users": one.get("Users", ""),
    } for one in _records(text, "ReservationName")]


def config(text: str) -> dict[str, str]:
    """``scontrol show config``: all keys of all its parts; (null) is an empty text."""
    found: dict[str, str] = {}
    for key, value in re.findall(r"(?m)^(\S+)\s+= ?(.*)$", text):
        found.setdefault(key, "" if value.strip() == "(null)" else value.strip())
    if "SLURM_VERSION" not in found:
        raise ValueError("no key SLURM_VERSION")
    return found


def digest(values: t.Mapping[str, str]) -> str:
    """One hash of what slurmctld runs with; the same for the same configuration on all hosts and days."""
    kept = "".join(f"{key}={values[key]}\n" for key in sorted(values) if key not in VOLATILE)
    return hashlib.sha256(kept.encode()).hexdigest()


def units(text: str) -> dict[str, dict[str, str]]:
    """``systemctl show -p Id,LoadState,ActiveState,UnitFileState A B``: one block for each unit that is there."""
    found = {}
    for block in re.split(r"\n\s*\n", text):
        values = dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line)
        if values.get("Id") and values.get("LoadState") == "loaded":
            found[values["Id"].replace(".service", "")] = {
                "active": values.get("ActiveState", ""), "enabled": values.get("UnitFileState", "")}
    return found
