# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What a role of ours gives to its modules, for a host that is not asked: its own tasks, defaults and variables.

So the arguments of a module stand in one place, the role.
"""
from __future__ import annotations

import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible.template import Templar, trust_as_template

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Task:
    """``when`` are the conditions of the task and of the blocks and the import around it."""

    args: dict[str, t.Any]
    when: tuple[t.Any, ...]


def _conditions(entry: t.Mapping[str, t.Any]) -> tuple[t.Any, ...]:
    when = entry.get("when", ())
    return tuple(when) if isinstance(when, (list, tuple)) else (when,)


def _tasks(entries: t.Any, action: str, around: tuple[t.Any, ...]) -> t.Iterator[Task]:
    for entry in entries or ():
        when = (*around, *_conditions(entry))
        if action in entry:
            yield Task(entry[action], when)
        for part in ("block", "always"):
            yield from _tasks(entry.get(part), action, when)


class Role:
    """One of our roles, as it lies on the controller."""

    def __init__(self, name: str, loader: t.Any) -> None:
        self.name, self.folder, self.loader = name, ROOT / "roles" / name, loader
        self._known: dict[tuple[str, str], list[Task]] = {}
        self.defaults: dict[str, t.Any] = self._load("defaults/main.yml") or {}
        self.variables: dict[str, t.Any] = self._load("vars/main.yml") or {}

    def _load(self, name: str) -> t.Any:
        path = self.folder / name
        if not path.exists():
            return None
        return self.loader.load_from_file(str(path), cache="none", trusted_as_template=True)

    def tasks(self, phase: str, action: str) -> list[Task]:
        """The tasks of a phase (a file of tasks/) with this action."""
        if (phase, action) not in self._known:
            self._known[phase, action] = self._find(phase, action)
        return self._known[phase, action]

    def _find(self, phase: str, action: str) -> list[Task]:
        around: tuple[t.Any, ...] = ()
        for entry in self._load("tasks/main.yml"):
            if entry.get("ansible.builtin.import_tasks") == f"{phase}.yml":
                around = _conditions(entry)
        return list(_tasks(self._load(f"tasks/{phase}.yml"), action, around))

    def template(self, name: str) -> str:
        return (self.folder / "templates" / name).read_text(encoding="utf-8")


class HostView:
    """Templates of roles with the variables of one host."""

    def __init__(self, roles: t.Iterable[Role], host_variables: t.Mapping[str, t.Any], extra: t.Mapping[str, t.Any],
                 loader: t.Any) -> None:
        self.values: dict[str, t.Any] = {}
        for layer in ([role.defaults for role in roles], [host_variables], [role.variables for role in roles], [extra]):
            for values in layer:
                self.values.update(values)
        self._templar = Templar(loader=loader, variables=self.values)

    def runs(self, task: Task) -> bool:
        return all(self._templar.evaluate_conditional(condition) for condition in task.when)

    def args(self, task: Task) -> dict[str, t.Any]:
        found: dict[str, t.Any] = self._templar.template(task.args)
        return found

    def value(self, name: str) -> t.Any:
        return self._templar.template(self.values[name])

    def text(self, template: str) -> str:
        """As the module template renders a file."""
        return str(self._templar.template(trust_as_template(template), escape_backslashes=False,
                                          overrides={"trim_blocks": True}))
