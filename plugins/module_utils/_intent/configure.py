# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of fabric_intent: read both intents of a host, keep one as good, or go back to it."""
from __future__ import annotations

import dataclasses
import typing as t

from .._host.errors import AidcError, Problem
from .._host.lock import host_lock
from .._host.machine import Machine
from . import io
from .model import GOOD_PATH, PATH, Intent, changes, words

STATES = ("read", "good", "restored")
_NO_GOOD = ("the gate keeps the intent of hosts that pass (playbooks/gate.yml); without a pass there is nothing to go "
            "back to: set the variables as they were and run playbooks/fabric.yml")


def spec() -> dict[str, t.Any]:
    return {"state": {"type": "str", "choices": list(STATES), "default": "read"}, "run_id": {"type": "str"}}


def _plan(state: str, now: Intent | None, good: Intent | None, run_id: str | None) -> tuple[str, str, Intent] | None:
    """(path, why, intent) of the one write, if there is one."""
    if state == "restored" and good is None:
        raise AidcError([Problem(GOOD_PATH, "no file", "the intent of the last pass", _NO_GOOD)])
    if state == "good" and now is not None and (good is None or good.sections != now.sections):
        why = "there is no good intent yet" if good is None else "the intent has changed since the last pass"
        return GOOD_PATH, why, dataclasses.replace(now, run_id=run_id, time=io.now())
    if state == "restored" and good is not None and (now is None or now.sections != good.sections):
        return PATH, "it is not the good one", dataclasses.replace(good, run_id=run_id, time=io.now())
    return None


def _sections(now: Intent | None, good: Intent | None) -> dict[str, t.Any]:
    return {"intent": now.sections if now else None, "good": good.sections if good else None}


def _result(before: dict[str, t.Any], step: tuple[str, str, Intent] | None, now: Intent | None,
            good: Intent | None) -> dict[str, t.Any]:
    differences = changes(good, now) if good is not None and now is not None else []
    after = _sections(now, good)
    return {
        "changed": step is not None, "before": before, "after": after,
        "commands": [["write", step[0]]] if step else [],
        "steps": [{"command": ["write", step[0]], "disruptive": "none", "why": step[1]}] if step else [],
        **after, "intent_time": now.time if now else None, "good_time": good.time if good else None,
        "differences": differences, "words": [words(change) for change in differences],
        "diff": {"before": before, "after": after},
    }


def _run(machine: Machine, state: str, run_id: str | None, check_mode: bool) -> dict[str, t.Any]:
    now, good = io.read(machine), io.read(machine, GOOD_PATH)
    before, step = _sections(now, good), _plan(state, now, good, run_id)
    if step is not None:
        if not check_mode:
            io.write(machine, step[0], step[2].text())
        now, good = (step[2], good) if step[0] == PATH else (now, step[2])
    return _result(before, step, now, good)


def configure(machine: Machine, state: str, run_id: str | None, check_mode: bool) -> dict[str, t.Any]:
    """Raises AidcError for a file that is no intent of this version, and for a host that has nothing to go back to."""
    if check_mode or state == "read":
        return _run(machine, state, run_id, check_mode)
    with host_lock(machine, "fabric_intent"):
        return _run(machine, state, run_id, check_mode)
