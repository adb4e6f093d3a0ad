# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""From results and what is remembered: which checks count as failed, and what becomes of the node. Pure."""
from __future__ import annotations

import dataclasses
import typing as t

from .._slurm import node_plan, reason
from .._slurm.node_model import Request, SlurmNode
from .model import SOURCE, Action, Count, Memory, Options, Result, Verdict

# Slurm keeps reasons of any length; sinfo and people do not.
_TEXT_CHARACTERS = 200


def _counted(options: Options, old: Count, result: Result) -> Count:
    if not result.applies:
        return Count()
    if result.ok is None:
        return old
    if result.ok:
        passes = min(old.passes + 1, options.pass_after)
        failed = old.failed and passes < options.pass_after
        return Count(0, passes, failed, old.text if failed else "")
    fails = min(old.fails + 1, options.fail_after)
    return Count(fails, 0, old.failed or fails >= options.fail_after, result.text)


def judge(options: Options, before: Memory, results: t.Sequence[Result]) -> Verdict:
    """A check that fails now and then never counts as failed, one that failed comes back after several good runs."""
    kept = {name: count for name, count in before.items() if name in options.enabled}
    for result in results:
        if result.check in options.enabled:
            kept[result.check] = _counted(options, kept.get(result.check, Count()), result)
    return Verdict(tuple(results), {name: kept[name] for name in options.enabled if name in kept})


def _one_line(text: str) -> str:
    """Without what has a meaning in a reason."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(plain.replace(reason.JOINT, ": ").split())


def drain_text(failed: t.Mapping[str, str]) -> str:
    text = _one_line("; ".join(f"{name}: {why}" for name, why in failed.items()))
    return text if len(text) <= _TEXT_CHARACTERS else f"{text[:_TEXT_CHARACTERS - 3]}..."


def _names(text: str) -> set[str]:
    return {part.partition(":")[0].strip() for part in text.split(";")}


def _drain(options: Options, node: SlurmNode, failed: t.Mapping[str, str]) -> Action:
    text = drain_text(failed)
    request = Request((node.name,), "draining", SOURCE, None, text)
    if not options.drain:
        return Action("none", f"would drain: {text}")
    if node_plan.held(request, node):
        return Action("none", f"left alone, as it is {node.state.text()} with the reason '{node.reason.raw}': {text}")
    # The same checks with other numbers in their texts are no news.
    if node.state.drain and node.reason.kind == "ours" and (
            node.reason.appended or _names(node.reason.text) == _names(text)):
        return Action("none", f"drained already: {text}")
    return Action("drain", text)


def decide(options: Options, node: SlurmNode, verdict: Verdict) -> Action:
    if verdict.failed:
        return _drain(options, node, verdict.failed)
    if not node.state.drain or not node.reason.is_of(SOURCE):
        return Action("none", "healthy")
    if not options.resume:
        return Action("none", "healthy; it stays drained, as resume is off")
    # What this host's intent has no word of is never good: nobody waits for it.
    without = {result.check for result in verdict.results if not result.applies}
    waiting = [name for name in options.enabled
               if name not in without and verdict.memory.get(name, Count()).passes < options.pass_after]
    if waiting:
        return Action("none", f"drained by us; not yet good for long enough: {', '.join(waiting)}")
    request = Request((node.name,), "resumed", SOURCE)
    problems = node_plan.check(request, {node.name: node})
    if problems:
        return Action("none", f"healthy, but it cannot be resumed: {problems[0].text()}")
    return Action("resume")


def at_once(options: Options) -> Options:
    """For a prolog: what fails now, fails."""
    return dataclasses.replace(options, fail_after=1)
