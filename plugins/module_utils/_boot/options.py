# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of a section against the module's own specification, as Ansible would check them. Pure."""
from __future__ import annotations

import typing as t

from .._host.errors import Problem

_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,),
                                       "list": (list,), "dict": (dict,)}
_HINT = "the tool and the intent are of two releases, or somebody edited the file: run playbooks/fabric.yml"
Spec = t.Mapping[str, t.Mapping[str, t.Any]]


def _is(value: t.Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "bool" or not isinstance(value, bool))


def _value(where: str, one: t.Mapping[str, t.Any], value: t.Any, bad: list[Problem]) -> t.Any:
    kind = one["type"]
    if not _is(value, kind):
        bad.append(Problem(where, repr(value)[:80], f"type {kind}", _HINT))
        return value
    values = value if kind == "list" else [value]
    element = one.get("elements", "str") if kind == "list" else kind
    wrong = [item for item in values if not _is(item, element)]
    choices = one.get("choices")
    wrong += [item for item in values if choices and item not in choices]
    if wrong:
        wanted = f"one of {', '.join(map(str, choices))}" if choices else f"type {element}"
        bad.append(Problem(where, repr(wrong[0])[:80], wanted, _HINT))
        return value
    if "options" not in one:
        return value
    inner = [complete(one["options"], item, where, bad) for item in values]
    return inner if kind == "list" else inner[0]


def complete(spec: Spec, given: t.Mapping[str, t.Any], where: str, bad: list[Problem]) -> dict[str, t.Any]:
    """``given`` with the defaults of what it lacks; what is wrong with it is added to ``bad``."""
    for name in sorted(set(given) - set(spec)):
        bad.append(Problem(f"{where}.{name}", "an unknown option", "options of this release", _HINT))
    found = {}
    for name, one in spec.items():
        value = given.get(name)
        if value is None:
            value = one.get("default")
        if value is None and one.get("required"):
            bad.append(Problem(f"{where}.{name}", "nothing", "a value", _HINT))
        found[name] = None if value is None else _value(f"{where}.{name}", one, value, bad)
    return found
