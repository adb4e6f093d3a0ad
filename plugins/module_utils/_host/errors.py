# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One shape for everything that is wrong: which object, what was found, what was wanted, what to do."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, in words for the operator."""

    object: str
    got: str
    wanted: str
    hint: str = ""

    def text(self) -> str:
        end = f" ({self.hint})" if self.hint else ""
        return f"{self.object}: got {self.got}, wanted {self.wanted}{end}"

    def as_dict(self) -> dict[str, str]:
        return {"object": self.object, "got": self.got, "wanted": self.wanted, "hint": self.hint}


class AidcError(Exception):
    """A call that cannot do what was asked.

    ``done`` holds the commands that ran before it; without any, the message says that nothing was changed.
    """

    def __init__(self, problems: t.Sequence[Problem], done: t.Sequence[t.Sequence[str]] = ()) -> None:
        self.problems = tuple(problems)
        self.done = [list(command) for command in done]
        super().__init__(self.message())

    def message(self) -> str:
        if self.done:
            state = f"Done before the error: {'; '.join(' '.join(command) for command in self.done)}."
        else:
            state = "Nothing was changed."
        return f"{'; '.join(problem.text() for problem in self.problems)}. {state}"

    def as_result(self) -> dict[str, t.Any]:
        """Arguments of ``fail_json``."""
        return {
            "msg": self.message(),
            "problems": [problem.as_dict() for problem in self.problems],
            "changed": bool(self.done),
            "commands": self.done,
        }
