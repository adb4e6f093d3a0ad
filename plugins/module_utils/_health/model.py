# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What the health program checks, with which limits, and what it remembers between two runs. Pure."""
from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass, field

from .._host.errors import AidcError, Problem

PROGRAM = "/usr/libexec/aidc/aidc-health.pyz"
CONFIG = "/etc/aidc/health.json"
# /run is empty after a boot, so the counts begin anew.
STATE = "/run/aidc/health.json"
SCHEMA_VERSION = 1
SOURCE = "health"
# In this order they are made; the first ones read files only.
FILE_CHECKS = ("memlock", "disk", "gpus", "ports")
# What differs from the intent, by the section that says so (_boot); these ask tools.
DRIFT_CHECKS = ("addresses", "mtu", "qos", "gid")
CHECKS = (*FILE_CHECKS, *DRIFT_CHECKS)
EXIT_OK, EXIT_BAD, EXIT_NO_VERDICT = 0, 2, 3
# slurmd kills the program after 60 s [SchedMD slurm-24.11 slurmd.c, run_script_health_check]; scontrol comes on top.
MOST_SECONDS = 40
_TYPES: dict[str, tuple[type, ...]] = {
    "checks": (list,), "gpus": (int, type(None)), "gpus_from": (str,), "memlock_bytes": (int, type(None)),
    "disks": (list,), "fail_after": (int,), "pass_after": (int,), "drain": (bool,), "resume": (bool,),
    "time_limit_seconds": (int,),
}


@dataclass(frozen=True)
class Disk:
    path: str
    min_free_percent: int = 5


@dataclass(frozen=True)
class Options:
    """``gpus`` and ``memlock_bytes`` None: the number is not checked, the limit must be unlimited."""

    checks: tuple[str, ...] = CHECKS
    gpus: int | None = None
    gpus_from: t.Literal["driver", "device_files"] = "driver"
    memlock_bytes: int | None = None
    disks: tuple[Disk, ...] = (Disk("/"),)
    # Runs in a row until a check counts as failed, or as good again.
    fail_after: int = 2
    pass_after: int = 3
    drain: bool = True
    resume: bool = False
    time_limit_seconds: int = 20

    def as_data(self) -> dict[str, t.Any]:
        disks = [{"path": disk.path, "min_free_percent": disk.min_free_percent} for disk in self.disks]
        return {**{name: getattr(self, name) for name in _TYPES}, "checks": list(self.checks), "disks": disks,
                "schema_version": SCHEMA_VERSION}

    def text(self) -> str:
        return json.dumps(self.as_data(), indent=1, sort_keys=True) + "\n"

    @property
    def enabled(self) -> tuple[str, ...]:
        return tuple(name for name in CHECKS if name in self.checks and (name != "gpus" or self.gpus is not None))


@dataclass(frozen=True)
class Result:
    """``ok`` None: nothing could be said, so it counts for nothing. ``applies`` False: nor ever on this host."""

    check: str
    ok: bool | None
    text: str = ""
    applies: bool = True

    def as_dict(self) -> dict[str, t.Any]:
        return {"check": self.check, "ok": self.ok, "text": self.text, "applies": self.applies}


@dataclass(frozen=True)
class Count:
    """One check's memory: runs in a row, and whether it counts as failed."""

    fails: int = 0
    passes: int = 0
    failed: bool = False
    text: str = ""


Memory = t.Mapping[str, Count]


@dataclass(frozen=True)
class Action:
    """What to do with the node: ``drain`` with a text, ``resume``, or ``none`` and why."""

    verb: t.Literal["none", "drain", "resume"]
    text: str = ""


@dataclass(frozen=True)
class Verdict:
    results: tuple[Result, ...] = ()
    memory: dict[str, Count] = field(default_factory=dict)

    @property
    def failed(self) -> dict[str, str]:
        return {name: count.text for name, count in self.memory.items() if count.failed}


def _refuse(got: str, wanted: str) -> AidcError:
    return AidcError([Problem(CONFIG, got, wanted, "aidc.gpu_cluster.slurm_health writes it")])


def _disks(entries: list[t.Any]) -> tuple[Disk, ...]:
    found = []
    for entry in entries:
        percent = entry.get("min_free_percent", 5) if isinstance(entry, dict) else None
        if not isinstance(percent, int) or not 0 <= percent <= 100 or not str(entry.get("path", "")).startswith("/"):
            raise _refuse(f"disks: {entry!r}", "a path and min_free_percent from 0 to 100")
        found.append(Disk(entry["path"], percent))
    return tuple(found)


def _check_numbers(options: Options) -> None:
    unknown = sorted(set(options.checks) - set(CHECKS))
    if unknown:
        raise _refuse(f"checks: {', '.join(map(str, unknown))}", f"some of {', '.join(CHECKS)}")
    if options.gpus_from not in ("driver", "device_files"):
        raise _refuse(f"gpus_from: {options.gpus_from!r}", "driver or device_files")
    limits = {"fail_after": 100, "pass_after": 100, "time_limit_seconds": MOST_SECONDS}
    for name, most in limits.items():
        if not 1 <= getattr(options, name) <= most:
            raise _refuse(f"{name}: {getattr(options, name)}", f"1 to {most}")


def options(data: t.Any) -> Options:
    """From the configuration's JSON or a module's options; raises AidcError."""
    if not isinstance(data, dict):
        raise _refuse(type(data).__name__, "an object")
    given = {name: value for name, value in data.items() if name != "schema_version"}
    version = data.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise _refuse(f"schema_version {version!r}", str(SCHEMA_VERSION))
    for name, value in given.items():
        kinds = _TYPES.get(name)
        if kinds is None or not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise _refuse(f"{name}: {value!r}", "an option of this release with a value of its type")
    given["checks"] = tuple(given.get("checks", CHECKS))
    given["disks"] = _disks(given["disks"]) if "disks" in given else Options.disks
    found = Options(**given)
    _check_numbers(found)
    return found


def memory(text: str | None) -> dict[str, Count]:
    """What the last run left; nothing where it is not there or cannot be read, so counting begins anew."""
    try:
        data = json.loads(text or "{}")
        return {name: Count(int(one["fails"]), int(one["passes"]), bool(one["failed"]), str(one["text"]))
                for name, one in data["checks"].items() if name in CHECKS} if data else {}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def memory_text(counts: Memory, time: str) -> str:
    checks = {name: {"fails": one.fails, "passes": one.passes, "failed": one.failed, "text": one.text}
              for name, one in counts.items()}
    return json.dumps({"schema_version": SCHEMA_VERSION, "time": time, "checks": checks}, indent=1) + "\n"
