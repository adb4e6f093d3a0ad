# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The intent file of a host: what its modules were last told, one section a module. Pure."""
from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass, field, replace

from .._host.errors import AidcError, Problem

SCHEMA_VERSION = 1
PATH = "/etc/aidc/intent.json"
# The intent with which the host last passed the gate.
GOOD_PATH = "/etc/aidc/intent.good.json"
FILE_MODE = 0o644
TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
# Modules that have a section, in the order of playbooks/fabric.yml.
SECTIONS = ("rail_network", "mlx5_port", "roce_qos", "roce_gid")
# The option of a section that lists its ports.
LISTS = {"rail_network": "rails", "mlx5_port": "ports", "roce_qos": "ports", "roce_gid": "ports"}
# What a call is told about its answer, or what it may expect of others at this moment, is no state of the host; a run
# in check mode may have other ones of these.
_NOT_KEPT = {"info", "missing", "revert_seconds"}
_NOT_KEPT_OF_PORTS = {"rdma_mtu_bytes"}
_AGAIN = "run playbooks/fabric.yml again, after you have removed the file"

Section = dict[str, t.Any]


@dataclass(frozen=True)
class Intent:
    sections: dict[str, Section] = field(default_factory=dict)
    run_id: str | None = None
    time: str = ""

    def with_section(self, name: str, options: Section, time: str) -> Intent:
        return replace(self, sections={**self.sections, name: options}, run_id=None, time=time)

    def as_data(self) -> dict[str, t.Any]:
        sections = {name: self.sections[name] for name in SECTIONS if name in self.sections}
        return {"schema_version": SCHEMA_VERSION, "run_id": self.run_id, "time": self.time, "sections": sections}

    def text(self) -> str:
        return json.dumps(self.as_data(), indent=1, sort_keys=True) + "\n"


def _given(value: t.Any) -> t.Any:
    """``value`` without what is None: what was not given is left alone, and a module takes no None for a choice."""
    if isinstance(value, dict):
        return {key: _given(item) for key, item in value.items() if item is not None}
    return [_given(item) for item in value] if isinstance(value, list) else value


def options_of(params: t.Mapping[str, t.Any]) -> Section:
    """The options of a call as its section has them: all that have a value, defaults included."""
    plain = json.loads(json.dumps({key: value for key, value in params.items() if key not in _NOT_KEPT}))
    kept: Section = _given(plain)
    for listed in set(LISTS.values()) & set(kept):
        kept[listed] = [{key: value for key, value in entry.items() if key not in _NOT_KEPT_OF_PORTS}
                        for entry in kept[listed]]
    return kept


def _refuse(path: str, got: str, wanted: str, hint: str = _AGAIN) -> AidcError:
    return AidcError([Problem(path, got, wanted, hint)])


def _check_sections(data: t.Mapping[str, t.Any], path: str) -> dict[str, Section]:
    sections = data.get("sections")
    if not isinstance(sections, dict):
        raise _refuse(path, f"sections: {type(sections).__name__}", "an object with one entry per module")
    for name, options in sections.items():
        if name not in SECTIONS:
            raise _refuse(path, f"a section {name[:40]!r}", f"sections of {', '.join(SECTIONS)}")
        entries = options.get(LISTS[name]) if isinstance(options, dict) else None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) and isinstance(entry.get("pci"), str)
                                                    for entry in entries):
            raise _refuse(path, f"section {name} without its {LISTS[name]}", f"{LISTS[name]} with a pci each")
    return dict(sections)


def parse(text: str, path: str) -> Intent:
    """Raises AidcError for what is not an intent of this version."""
    try:
        data = json.loads(text)
    except ValueError as error:
        # What a full disk or somebody's editor leaves.
        raise _refuse(path, f"no JSON ({error})" if text.strip() else "an empty file", "the host's intent") from None
    if not isinstance(data, dict):
        raise _refuse(path, type(data).__name__, "an object")
    version = data.get("schema_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < SCHEMA_VERSION:
        raise _refuse(path, f"schema_version {version!r}", str(SCHEMA_VERSION))
    if version > SCHEMA_VERSION:
        raise _refuse(path, f"schema_version {version}", f"{SCHEMA_VERSION}, the newest one known here",
                      "a newer release of the collection wrote it: use that one, or remove the file and run "
                      "playbooks/fabric.yml again")
    run_id, time = data.get("run_id"), data.get("time")
    if not isinstance(time, str) or not isinstance(run_id, (str, type(None))):
        raise _refuse(path, f"run_id {run_id!r}, time {time!r}", "texts")
    return Intent(_check_sections(data, path), run_id, time)


def _difference(section: str, port: str | None, was: Section, now: Section) -> list[dict[str, t.Any]]:
    """None and a missing option are the same: left alone."""
    return [{"section": section, "port": port, "option": key, "was": was.get(key), "is": now.get(key)}
            for key in sorted({*was, *now}) if was.get(key) != now.get(key)]


def _by_port(options: Section, name: str) -> dict[str, Section]:
    return {str(entry["pci"]).strip().lower(): {key: value for key, value in entry.items() if key != "pci"}
            for entry in options.get(name, [])}


def changes(good: Intent, now: Intent) -> list[dict[str, t.Any]]:
    """What another intent says differently: section, port, option, what it was and is.

    A section or port that one of them lacks has one entry, with the option None.
    """
    found: list[dict[str, t.Any]] = []
    for name in SECTIONS:
        was, now_ = good.sections.get(name), now.sections.get(name)
        if was is None or now_ is None:
            if was is not now_:
                found.append({"section": name, "port": None, "option": None, "was": was is not None,
                              "is": now_ is not None})
            continue
        listed = LISTS[name]
        found += _difference(name, None, *({key: value for key, value in options.items() if key != listed}
                                           for options in (was, now_)))
        before, after = _by_port(was, listed), _by_port(now_, listed)
        for port in dict.fromkeys((*before, *after)):
            if port in before and port in after:
                found += _difference(name, port, before[port], after[port])
            else:
                found.append({"section": name, "port": port, "option": None, "was": port in before,
                              "is": port in after})
    return found


def words(change: t.Mapping[str, t.Any]) -> str:
    """One entry of ``changes`` for people."""
    where = f"{change['section']} of {change['port']}" if change["port"] else change["section"]
    if change["option"] is None:
        return f"{where}: {'is new' if change['is'] else 'is gone'}"
    was, now = (json.dumps(change[key], sort_keys=True) for key in ("was", "is"))
    return f"{where}: {change['option']} was {was}, is {now}"
