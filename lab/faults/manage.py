# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Set, clear and show faults, and set them again at a host's boot."""
from __future__ import annotations

import os
import time
from collections.abc import Container

from lab import power
from lab.faults import scope, steps, store, table
from lab.faults.scope import Place
from lab.faults.store import Record
from lab.faults.table import FaultError, Row
from lab.hardware import door
from lab.instance import Instance

START_SECONDS = 20.0


def _row(record: Record) -> Row:
    return table.row(record.name, record.row)


def _places(instance: Instance, record: Record) -> list[Place]:
    return scope.places(scope.hosts(instance), _row(record), record.target, record.parameters)


def _named(rows: dict[str, Row], name: str, more: Container[str] = ()) -> None:
    if name not in rows and name not in more:
        raise FaultError(f"no fault {name!r}; there are: {', '.join(rows)}")


def _all(_mechanism: str) -> bool:
    return True


def set_fault(instance: Instance, rows: dict[str, Row], name: str, target: str, texts: list[str]) -> str:
    """Set one fault. Returns what to tell the user; raises FaultError when it cannot be, with nothing changed."""
    _named(rows, name)
    row = rows[name]
    parameters = table.values_of(row, texts)
    spots = scope.places(scope.hosts(instance), row, target, parameters)
    record = Record(name, target, parameters, row.data, scope.touched(row, spots))
    with store.locked(instance):
        records = store.read(instance)
        same = next((other for other in records if other.same(record)), None)
        if same is not None and same.state in ("set", "waiting", "fired"):
            return f"{record.title()} is set already" + _state(same)
        for other in records:
            common = sorted(set(other.touched) & set(record.touched))
            if other is not same and common:
                raise FaultError(f"{record.title()}: {common[0]} is changed by {other.title()} already; "
                                 f"first: lab fault clear {other.name} {other.target}")
        if same is not None:
            records.remove(same)
        off = sorted({spot.host for spot in spots if power.running(instance, spot.host) is None})
        waits = bool(off) and steps.needs_host(row)
        if waits and not row.survives_reboot:
            raise FaultError(f"{record.title()}: host {off[0]} is off, and a boot ends this fault")
        store.write(instance, [*records, record])
        if waits:
            record.state = "waiting"
        else:
            try:
                steps.do(instance, row, spots, "set", _all)
            except FaultError:
                _undo(instance, records, row, spots)
                raise
            record.state = "set"
        store.write(instance, [*records, record])
    return f"{record.title()} is set" if record.state == "set" else f"{record.title()} will be set at the next boot"


def _undo(instance: Instance, records: list[Record], row: Row, spots: list[Place]) -> None:
    """After a step that failed: the other ones back, the record gone. What fails here stays recorded."""
    steps.do(instance, row, spots, "clear", _all)
    store.write(instance, records)


def _state(record: Record) -> str:
    return "" if record.state == "set" else f" ({store.STATES[record.state]})"


def clear(instance: Instance, rows: dict[str, Row], name: str | None, target: str | None,
          wait: bool = True) -> list[str]:
    """Clear all faults, those of one name, or those of one name on one target; lines for the user."""
    lines, booting = [], set()
    there = scope.hosts(instance)
    with store.locked(instance):
        records = store.read(instance)
        if name is not None:
            _named(rows, name, {record.name for record in records})
        targets = {*there, *(host.leaf for host in there.values() if host.leaf)}
        if target is not None and target not in targets:
            raise FaultError(f"no host or leaf {target!r}; there are: {', '.join(sorted(targets))}")
        chosen = [record for record in records if name in (None, record.name) and target in (None, record.target)]
        # The last one first; and power last, so that a host that is off stays so until the others are done.
        chosen.reverse()
        chosen.sort(key=lambda record: any(mechanism in ("power", "watch") for mechanism in _mechanisms(record)))
        for record in chosen:
            off_before = {spot.host for spot in _places(instance, record) if power.running(instance, spot.host) is None}
            lines.append(_clear_one(instance, records, record))
            if any(mechanism in ("power", "watch") for mechanism in _mechanisms(record)):
                booting |= off_before
    for host in sorted(booting) if wait else ():
        power.wait_until_running(instance, host)
        lines.append(f"{host} runs")
    what = " ".join(word for word in (name, target and f"on {target}") if word)
    return lines or [f"no fault {what} is set" if what else "no fault is set"]


def _mechanisms(record: Record) -> list[str]:
    return [mechanism for mechanism, _keys in _row(record).steps]


def _clear_one(instance: Instance, records: list[Record], record: Record) -> str:
    row, spots = _row(record), _places(instance, record)
    waiting, record.state = record.state == "waiting", "clearing"
    store.write(instance, records)
    off = any(power.running(instance, spot.host) is None for spot in spots)
    if off and steps.needs_host(row) and not waiting:
        # Its files and its hardware model are there again with the next boot.
        return f"{record.title()} will be cleared at the next boot"
    if not waiting:
        steps.do(instance, row, spots, "clear", _all)
    records.remove(record)
    store.write(instance, records)
    more = f". {table.expand(row.after_clear, spots[0].values)}" if row.after_clear else ""
    return f"{record.title()} is cleared{more}"


def show(instance: Instance) -> list[str]:
    scope.hosts(instance)
    return [record.title() + _state(record) for record in store.read(instance)] or ["no fault is set"]


def again(instance: Instance, host: str, mechanisms: Container[str]) -> None:
    """Do again on ``host`` what recorded faults have to do through these mechanisms. The caller holds the lock."""
    for record in store.read(instance):
        spots = [spot for spot in _places(instance, record) if spot.host == host]
        if spots and record.state != "clearing":
            steps.do(instance, _row(record), spots, "set", lambda mechanism: mechanism in mechanisms)


def _phase(instance: Instance, host: str, phase: str) -> None:
    """Bring all records that act on ``host`` to where they should be, as far as this phase of the boot goes."""
    due = {name for name, mechanism in steps.MECHANISMS.items() if mechanism.at_boot == phase}
    for record in store.read(instance):
        row = _row(record)
        spots = [spot for spot in _places(instance, record) if spot.host == host]
        ends = record.state == "clearing" or not row.survives_reboot
        if spots:
            steps.do(instance, row, spots, "clear" if ends else "set", lambda mechanism: mechanism in due)


def before_boot(instance: Instance, host: str, kind: str) -> None:
    with store.locked(instance):
        _phase(instance, host, "links")
        where = instance.host_dir(host) / "door"
        if any(mechanism == "hardware" for record in store.read(instance) for mechanism in _mechanisms(record)):
            # What was cleared just now is found by this boot's scan of the bus.
            door.ask(where, {"do": "event", "event": kind})


def after_boot(instance: Instance, host: str, child: int) -> None:
    """Wait for PID 1 to be systemd, with the mounts of the boot made, and finish the records of ``host``."""
    deadline = time.monotonic() + START_SECONDS
    while power.running(instance, host) is None:
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None or time.monotonic() > deadline:
            return
        time.sleep(0.002)
    with store.locked(instance):
        _phase(instance, host, "host")
        left = []
        for record in store.read(instance):
            spots = _places(instance, record)
            mine = any(spot.host == host for spot in spots)
            if mine and (record.state == "clearing" or not _row(record).survives_reboot):
                continue
            if mine and record.state in ("waiting", "setting") and not any(
                    power.running(instance, spot.host) is None for spot in spots):
                record.state = "set"
            left.append(record)
        store.write(instance, left)
