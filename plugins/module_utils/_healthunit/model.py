# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The health program's files on a host, and what a call of slurm_health wants of them. Pure."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._health.model import CONFIG, PROGRAM, Options
from .._host.errors import Problem
from .._host.installed import Present

MODES = {PROGRAM: 0o755, CONFIG: 0o644}
OURS = (PROGRAM, CONFIG)


@dataclass(frozen=True)
class Request:
    """``digest`` is the SHA-256 of the program, ``source`` where its bytes are, if they came along."""

    state: t.Literal["present", "absent"] = "present"
    options: Options = Options()
    digest: str = ""
    source: str = ""
    ask: bool = True


@dataclass(frozen=True)
class Node:
    files: dict[str, Present] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """("write", path) or ("remove", path)."""

    command: tuple[str, str]
    why: str
    text: str | None = None

    def as_dict(self) -> dict[str, t.Any]:
        return {"command": list(self.command), "disruptive": "none", "why": self.why}


def check(request: Request) -> list[Problem]:
    if request.state == "present" and not request.digest:
        return [Problem("digest", "nothing", "the SHA-256 of the program",
                        "the action plugin of slurm_health packs it: call the module by its full name")]
    return []


def wanted(request: Request) -> dict[str, str]:
    return {PROGRAM: request.digest, CONFIG: request.options.text()} if request.state == "present" else {}


def needs_source(request: Request, node: Node) -> bool:
    have = node.files.get(PROGRAM)
    return request.state == "present" and (have is None or have.text != request.digest)


def plan(request: Request, node: Node) -> list[Step]:
    """The options before the program, which slurmd may start at any moment; removed in the other order."""
    texts = wanted(request)
    if not texts:
        return [Step(("remove", path), "not wanted") for path in OURS if path in node.files]
    found = []
    for path in reversed(OURS):
        have = node.files.get(path)
        if have is None or (have.text, have.mode) != (texts[path], MODES[path]):
            why = "there is none" if have is None else "it differs" if have.text != texts[path] else (
                f"its mode is {have.mode:04o}")
            found.append(Step(("write", path), why, None if path == PROGRAM else texts[path]))
    return found


def state(node: Node) -> dict[str, t.Any]:
    return {path: {"text": node.files[path].text, "mode": f"{node.files[path].mode:04o}"}
            for path in OURS if path in node.files}


def predict(request: Request) -> dict[str, t.Any]:
    return {path: {"text": text, "mode": f"{MODES[path]:04o}"} for path, text in wanted(request).items()}


def verify(request: Request, node: Node) -> list[Problem]:
    have, must = state(node), predict(request)
    return [Problem(path, "another content or mode", "ours", "read back after all steps")
            for path in OURS if have.get(path) != must.get(path)]
