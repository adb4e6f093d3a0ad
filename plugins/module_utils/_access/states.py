# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What the module run_access does in each state: sweep first, then what was asked for."""
from __future__ import annotations

import os
import pwd
import socket
import time
import typing as t
from dataclasses import dataclass, field

from .._host.errors import AidcError, Problem
from .._host.lock import host_lock
from . import authorized, io, processes
from .model import Here, Record, is_current, run_of_mark

POLL_SECONDS = 0.5
# A sweep holds the lock for as long as processes need to end.
LOCK_WAIT_SECONDS = 20.0


@dataclass(frozen=True)
class Wish:
    """The module's options."""

    state: str
    run_id: str = ""
    head: str = ""
    holder: str = ""
    address: str = ""
    public_key: str = ""
    from_addresses: tuple[str, ...] = ()
    host_keys: tuple[str, ...] = ()
    lifetime_seconds: int = 600
    claim_seconds: int = 60
    wait_seconds: int = 0


@dataclass
class Work:
    """What one call did."""

    commands: list[list[str]] = field(default_factory=list)
    swept_runs: set[str] = field(default_factory=set)
    killed: list[processes.Marked] = field(default_factory=list)
    left: list[processes.Marked] = field(default_factory=list)
    values: dict[str, t.Any] = field(default_factory=dict)


def holder_of(wish: Wish) -> str:
    """Who started the run, for whoever finds it in the way; SSH_CONNECTION begins with the controller's address."""
    user = wish.holder or pwd.getpwuid(os.getuid()).pw_name
    peer = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]
    return f"{user} from {peer}" if peer else user


def situation(store: io.Store) -> dict[str, t.Any]:
    """What is there of runs, for `before` and `after`."""
    return {
        "runs": store.run_ids(), "authorized_runs": sorted(store.authorized_runs()),
        "processes": len(processes.find(lambda run_id: True)),
    }


def current(store: io.Store, wish: Wish, here: Here) -> list[Record]:
    """Other runs that are alive here. For a host that is being authorized its head has been asked already."""
    head = wish.head if wish.state == "authorized" else ""
    return [record for record in store.records() if record.run_id != wish.run_id and is_current(record, here, head)]


def sweep(store: io.Store, wish: Wish, keep: t.Iterable[str], work: Work) -> None:
    """Remove what runs left that are not in ``keep``: processes, lines, folders with keys."""
    kept = set(keep)
    ended = processes.end(lambda mark: run_of_mark(mark) not in kept)
    work.killed += ended.killed
    work.left = ended.left
    lines = {run_id for run_id in store.authorized_runs() if run_id not in kept}
    if lines:
        store.edit_authorized(lines)
    gone = {run_id for run_id in store.run_ids() if run_id not in kept and store.remove(run_id)}
    work.swept_runs |= lines | gone | {run_of_mark(process.run_id) for process in ended.killed}


def absent(store: io.Store, wish: Wish, work: Work) -> None:
    keep = {record.run_id for record in current(store, wish, io.here())}
    sweep(store, wish, keep, work)
    work.values["alive"] = [record.summary() for record in store.records() if record.run_id in keep]


def swept(store: io.Store, wish: Wish, work: Work) -> None:
    absent(store, wish, work)


def made(store: io.Store, wish: Wish, work: Work) -> None:
    """On the head: a key pair of the run's own. The private key stays where it was made."""
    here = io.here()
    addresses = io.addresses_of(wish.address)
    if not addresses:
        raise AidcError([Problem("address", repr(wish.address), "an address that this host can resolve",
                                 "it is what the other hosts see this host come from")])
    _new_record(store, wish, here, here.now + wish.claim_seconds)
    try:
        public_key, argv = io.make_key(store.machine(), store.run_dir(wish.run_id), f"aidc-run={wish.run_id}")
    except AidcError:
        store.remove(wish.run_id)
        raise
    work.commands.append(argv)
    work.values.update(public_key=public_key, addresses=addresses, run_dir=str(store.run_dir(wish.run_id)))


def allowed(store: io.Store, wish: Wish, work: Work) -> None:
    """On each host: the key may log in, from the head, until its time is over."""
    here = io.here()
    _check_line(wish)
    keys = list(wish.host_keys) or io.host_keys()
    if not keys:
        raise AidcError([Problem("/etc/ssh/ssh_host_*_key.pub", "no public host key", "at least one",
                                 "give them with the option host_keys")])
    until = here.now + wish.lifetime_seconds
    if store.record(wish.run_id) is None:
        _new_record(store, wish, here, until)
    io.own_directory(store.run_dir(wish.run_id) / "tmp")
    line = authorized.line(wish.public_key, wish.run_id, wish.from_addresses, until)
    store.edit_authorized({wish.run_id}, line)
    work.values.update(host_keys=keys, run_dir=str(store.run_dir(wish.run_id)))


def _check_line(wish: Wish) -> None:
    """Nothing may get into the options of the line that is not a key and not an address."""
    if not authorized.PUBLIC_KEY.fullmatch(wish.public_key):
        raise AidcError([Problem("public_key", repr(wish.public_key[:60]), "type and base64 of a public key",
                                 "state=made on the head returns it")])
    bad = [address for address in wish.from_addresses if not authorized.ADDRESS.fullmatch(address)]
    if bad or not wish.from_addresses:
        raise AidcError([Problem("from_addresses", repr(bad or []), "numeric addresses of the head",
                                 "state=made on the head returns them")])


def _new_record(store: io.Store, wish: Wish, here: Here, until: float) -> None:
    io.own_directory(store.run_dir(wish.run_id))
    store.write_record(Record(wish.run_id, wish.head, holder_of(wish), until, here.host, here.boot_id))


_STATES = {"made": made, "authorized": allowed, "absent": absent, "swept": swept}


def perform(store: io.Store, wish: Wish) -> Work:
    """Wait for runs that are alive, sweep the others, do what was asked; all under the lock of this user."""
    work = Work()
    store.prepare()
    deadline = time.monotonic() + wish.wait_seconds
    while True:
        with host_lock(store.machine(), f"run_access {wish.state} {wish.run_id}", LOCK_WAIT_SECONDS):
            alive = current(store, wish, io.here())
            if not alive or wish.state in ("absent", "swept"):
                if wish.state in ("made", "authorized"):
                    sweep(store, wish, {wish.run_id}, work)
                _STATES[wish.state](store, wish, work)
                break
        if time.monotonic() >= deadline:
            raise _busy(alive[0])
        time.sleep(POLL_SECONDS)
    work.values["hostname"] = socket.gethostname()
    return work


def _busy(record: Record) -> AidcError:
    process = f", pid {record.pid}" if record.pid else ""
    return AidcError([Problem(
        "this host", f"in use by run {record.run_id} of {record.holder} (led by {record.head}{process})",
        "no other run", "wait for that run to end, then start again",
    )])
