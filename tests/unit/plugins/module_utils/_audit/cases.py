# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a consistent fleet, as cases.yml describes them."""
from __future__ import annotations

import typing as t
from pathlib import Path

import yaml

from plugins.module_utils._audit import expect, report
from plugins.module_utils._audit.derive_host import host
from plugins.module_utils._audit.facts import Host
from tests.unit.plugins.module_utils._audit.fleet import NOW, Fleet

Case = dict[str, t.Any]
CASES: dict[str, Case] = yaml.safe_load((Path(__file__).with_name("cases.yml")).read_text(encoding="utf-8"))
VICTIM = "gb200-0002"


def put(data: t.Any, path: str, value: t.Any) -> None:
    """``a.0.b``; an index one beyond the end of a list appends, and a last part that is null removes a record."""
    *parts, last = path.split(".")
    for part in parts:
        part = f"{int(part[1:]):04x}:03:00.0" if part.startswith("#") else part
        data = data[int(part)] if isinstance(data, list) else data.setdefault(part, {})
    if isinstance(data, list):
        data[int(last):int(last) + 1] = [{**data[int(last)], **value}
                                         if isinstance(value, dict) and int(last) < len(data) else value]
    elif last.isdigit():
        raise KeyError(path)
    else:
        data[last] = value


def change(fleet: Fleet, case: Case, name: str = VICTIM) -> Fleet:
    for values in fleet.values.values():
        values.update(case.get("every", {}))
    fleet.values[name].update(case.get("inventory", {}))
    if "time" in case:
        fleet.times[name] = case["time"]
    for path, value in case.get("set", {}).items():
        if "." in path or value is not None:
            put(fleet.records[name], path, value)
        else:
            del fleet.records[name][path]
    return fleet


def read(fleet: Fleet, wants: t.Sequence[expect.HostWant]) -> dict[str, Host]:
    return {want.name: host(want, fleet.records[want.name], fleet.full(want.name, "mlx5_info")
                            if "mlx5_info" in fleet.records[want.name] else None, NOW) for want in wants}


def audit(fleet: Fleet) -> dict[str, t.Any]:
    wants = expect.load(fleet.document())
    return report.audit(wants, read(fleet, wants), NOW)


def found(fleet: Fleet) -> list[tuple[str, tuple[str, ...], int | None]]:
    return [(one["id"], tuple(one["hosts"]), one["rail"]) for one in audit(fleet)["findings"]]
