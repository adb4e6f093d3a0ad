# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""From what is wanted and what is there: what is wrong, the steps, the state before and after. Pure."""
from __future__ import annotations

import typing as t

from .._host.errors import Problem
from .model import HEADER, PENDING_FILE, RULE, SERVICE, TEMPLATE, TOOL, TOOL_MODE, UNIT, Node, Request, Step

OURS = (TOOL, SERVICE, TEMPLATE, RULE)
_ENABLED = "enabled"


def check(request: Request, node: Node) -> list[Problem]:
    found = [Problem(path, "a file that is not ours", "our own file, or none",
                     "move it away; only files with our header are rewritten")
             for path in OURS[1:] if path in node.files and not node.files[path].text.startswith(HEADER)]
    if request.state == "present" and node.enabled.startswith("masked"):
        found.append(Problem(UNIT, "masked", "a unit that can be enabled",
                             f"somebody has switched the boot tool off: systemctl unmask {UNIT}"))
    if request.state == "present" and not request.digest:
        found.append(Problem("digest", "nothing", "the SHA-256 of the tool",
                             "the action plugin of fabric_boot packs the tool: call the module by its full name"))
    return found


def state(node: Node) -> dict[str, t.Any]:
    """Files that are there, and whether the tool runs at boot."""
    return {"files": {path: {"text": node.files[path].text, "mode": f"{node.files[path].mode:04o}"}
                      for path in OURS if path in node.files}, "enabled": node.enabled == _ENABLED}


def _wanted(request: Request) -> dict[str, tuple[str, int]]:
    return {TOOL: (request.digest, TOOL_MODE), **{path: (text, 0o644) for path, text in request.texts.items()}}


def needs_source(request: Request, node: Node) -> bool:
    """Whether the tool's bytes must come along."""
    return request.state == "present" and (TOOL not in node.files or node.files[TOOL].text != request.digest)


def predict(request: Request) -> dict[str, t.Any]:
    if request.state == "absent":
        return {"files": {}, "enabled": False}
    return {"files": {path: {"text": text, "mode": f"{mode:04o}"} for path, (text, mode) in _wanted(request).items()},
            "enabled": True}


def _write(node: Node, path: str, text: str, mode: int) -> Step | None:
    have = node.files.get(path)
    if have is not None and (have.text, have.mode) == (text, mode):
        return None
    why = "there is none" if have is None else "it differs" if have.text != text else f"its mode is {have.mode:04o}"
    return Step(("write", path), why, None if path == TOOL else text, mode)


def _read_again(paths: t.Collection[str], pending: bool) -> list[Step]:
    """systemd and udev take new files over."""
    found = []
    if pending or {SERVICE, TEMPLATE} & set(paths):
        found.append(Step(("systemctl", "daemon-reload"), "units changed"))
    if pending or RULE in paths:
        found.append(Step(("udevadm", "control", "--reload"), "the rule changed"))
    return found


def _around(changes: list[Step], node: Node) -> list[Step]:
    """Changes of files, in the marker that outlives a run that is killed between them and the reload."""
    told = _read_again([step.command[1] for step in changes], node.pending)
    if not told:
        return changes
    start = [] if node.pending else [Step(("write", PENDING_FILE), "systemd and udev have not read the files", "")]
    return [*start, *changes, *told, Step(("remove", PENDING_FILE), "systemd and udev have read the files")]


def plan(request: Request, node: Node) -> list[Step]:
    if request.state == "absent":
        off = [Step(("systemctl", "disable", UNIT), "it is enabled")] if node.enabled == _ENABLED else []
        return [*off, *_around([Step(("remove", path), "not wanted") for path in reversed(OURS) if path in node.files],
                               node)]
    writes = [step for path, (text, mode) in _wanted(request).items()
              if (step := _write(node, path, text, mode)) is not None]
    on = [] if node.enabled == _ENABLED else [Step(("systemctl", "enable", UNIT), f"it is {node.enabled or 'unknown'}")]
    return [*_around(writes, node), *on]


def verify(request: Request, node: Node) -> list[Problem]:
    """What does not hold although every step reported success."""
    have, must = state(node), predict(request)
    found = [Problem(path, "another content or mode", "ours", "read back after all steps")
             for path in OURS if have["files"].get(path) != must["files"].get(path)]
    if have["enabled"] != must["enabled"]:
        found.append(Problem(UNIT, node.enabled or "unknown", "enabled" if must["enabled"] else "disabled",
                             "read back after all steps"))
    return found
