# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Reservations from what scontrol says, and from what is wanted and what is there to the steps. Pure."""
from __future__ import annotations

import re
import typing as t

from .._host.errors import Problem
from . import hostlist
from .hold_model import Request, Reservation, Step

# scontrol takes Duration in minutes; the gate's longest search is far below a day.
MOST_MINUTES = 24 * 60
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\$?")
_KEY = re.compile(r"(?:^|\s)([A-Za-z]+)=")
NONE = "No reservations in the system"


class HoldError(ValueError):
    """A text that is no answer of `scontrol show reservation`; the message says what is wrong with which line."""


def _fields(line: str) -> dict[str, str]:
    """Of one line; a value goes to the next key, as Flags and TRES hold commas and never blanks."""
    found = list(_KEY.finditer(line))
    ends = [match.start() for match in found[1:]] + [len(line)]
    return {match[1]: line[match.end():end].strip() for match, end in zip(found, ends)}


def _list(text: str) -> list[str]:
    return [] if text in ("", "(null)") else hostlist.expand(text)


def parse(text: str) -> list[Reservation]:
    """The answer of `scontrol -o show reservation`. Raises HoldError."""
    found = []
    for line in text.splitlines():
        if not line.strip() or line.startswith(NONE):
            continue
        fields = _fields(line)
        if "ReservationName" not in fields or "Nodes" not in fields:
            raise HoldError(f"got {line[:80]!r}, wanted ReservationName=... Nodes=...")
        try:
            nodes, users = _list(fields["Nodes"]), [] if fields.get("Users", "") == "(null)" else \
                fields.get("Users", "").split(",")
        except hostlist.HostlistError as error:
            raise HoldError(str(error)) from None
        found.append(Reservation(fields["ReservationName"], tuple(sorted(nodes)), tuple(sorted(filter(None, users))),
                                 fields.get("StartTime", ""), fields.get("EndTime", ""), fields.get("State", "")))
    return found


def check(request: Request) -> list[Problem]:
    found = []
    for name, value in (("purpose", request.purpose), ("run_id", request.run_id)):
        if not _WORD.fullmatch(value) and (value or name == "purpose" or request.state == "present"):
            found.append(Problem(name, repr(value), "letters, digits, dashes and underscores, at most 64",
                                 "they are the reservation's name"))
    if request.state == "present":
        if not request.nodes:
            found.append(Problem("nodes", "none", "the nodes to hold"))
        bad = [user for user in request.users if not _USER.fullmatch(user)]
        if bad or not request.users:
            got = ", ".join(map(repr, bad)) or "none"
            found.append(Problem("users", got, "names of users, who may run jobs there"))
        if not 1 <= request.minutes <= MOST_MINUTES:
            found.append(Problem("minutes", str(request.minutes), f"1 to {MOST_MINUTES}"))
    return found


def fits(request: Request, one: Reservation) -> bool:
    return one.nodes == tuple(sorted(set(request.nodes))) and one.users == tuple(sorted(set(request.users)))


def _delete(one: Reservation, why: str) -> Step:
    return Step(("scontrol", "delete", f"ReservationName={one.name}"), why)


def plan(request: Request, have: t.Sequence[Reservation]) -> list[Step]:
    if request.state == "absent":
        return [_delete(one, "the run is over") for one in have if request.is_mine(one.name)]
    # First what others of the same purpose have left: it would overlap.
    steps = [_delete(one, "left by another run") for one in have if request.is_left(one.name)]
    mine = next((one for one in have if one.name == request.name), None)
    if mine is not None and fits(request, mine):
        return steps
    if mine is not None:
        steps.append(_delete(mine, "it holds other nodes, or is for other users"))
    # No flag: with MAINT or IGNORE_JOBS a node would be held under running jobs (scontrol(1)).
    create = ("scontrol", "create", "reservation", f"ReservationName={request.name}", "StartTime=now",
              f"Duration={request.minutes}", f"Users={','.join(dict.fromkeys(request.users))}",
              f"Nodes={hostlist.compress(request.nodes, sort=True)}")
    return [*steps, Step(create, "no other job starts there until it is removed, or its time is over")]


def predict(request: Request, have: t.Sequence[Reservation], steps: t.Sequence[Step]) -> list[Reservation]:
    gone = {step.command[2].split("=", 1)[1] for step in steps if step.command[1] == "delete"}
    after = [one for one in have if one.name not in gone]
    if any(step.command[1] == "create" for step in steps):
        after.append(Reservation(request.name, tuple(sorted(set(request.nodes))), tuple(sorted(set(request.users)))))
    return after


def verify(request: Request, after: t.Sequence[Reservation]) -> list[Problem]:
    """What does not hold although every command reported success."""
    if request.state == "absent":
        return [Problem(one.name, "still there", "no such reservation", "read back after all steps")
                for one in after if request.is_mine(one.name)]
    mine = next((one for one in after if one.name == request.name), None)
    if mine is None or not fits(request, mine):
        got = "no such reservation" if mine is None else f"nodes {hostlist.compress(mine.nodes)}"
        return [Problem(request.name, got, f"nodes {hostlist.compress(request.nodes, sort=True)}",
                        "read back after all steps")]
    return []
