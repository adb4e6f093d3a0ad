# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The domains of an inventory, and what may be done to each as a whole. Pure; for the controller.

The list is that of all hosts with the variable, whoever takes part in a run. It is changed with all of them or with
none, as a daemon with another list than the others' is blocked for good [driver-slurm-k8s.md trap 6].
"""
from __future__ import annotations

import typing as t

from .model import OWNERS, UNIT, plain_address, some
from .plan import entry

VARIABLE, ADDRESS, OWNER, TRAYS = ("nvlink_domain", "imex_domain_address", "imex_domain_owner",
                                   "node_class_nvlink_domain_trays")
VARIABLES = (VARIABLE, ADDRESS, "ansible_host", OWNER, TRAYS)
Values = t.Mapping[str, t.Any]
Answers = t.Mapping[str, t.Mapping[str, t.Any]]


def _trays(values: Values) -> int | None:
    try:
        return int(values[TRAYS])
    except (KeyError, TypeError, ValueError):
        return None


def _address(host: str, values: Values, problems: list[str]) -> str:
    given = str(values.get(ADDRESS) or values.get("ansible_host") or host)
    plain = plain_address(given)
    if plain is None:
        problems.append(f"{host}: {ADDRESS}: got {given!r}, wanted the IP address by which the other trays reach it "
                        "(ansible_host is taken where it is one; a name may lead elsewhere on each node)")
    return plain or given


def _domain(name: str, hosts: t.Mapping[str, Values]) -> dict[str, t.Any]:
    problems: list[str] = []
    nodes = [_address(host, values, problems) for host, values in hosts.items()]
    owners = {host: str(values.get(OWNER) or "host") for host, values in hosts.items()}
    if set(owners.values()) == {"dra"}:
        # The DRA driver makes its own lists.
        return {"hosts": list(hosts), "nodes": nodes, "problems": _size(name, hosts)}
    for node in sorted({one for one in nodes if nodes.count(one) > 1}):
        twins = [host for host, other in zip(hosts, nodes) if other == node]
        problems.append(f"{some(twins)}: {ADDRESS}: got {node} for each, wanted an address of its own")
    return {"hosts": list(hosts), "nodes": nodes, "problems": [*problems, *_size(name, hosts), *_owners(name, owners)]}


def _size(name: str, hosts: t.Mapping[str, Values]) -> list[str]:
    problems = []
    without = [host for host, values in hosts.items() if _trays(values) == 0]
    if without:
        problems.append(f"{some(without)}: {VARIABLE}: got {name}, wanted none, as the class has no NVLink between "
                        f"nodes ({TRAYS} is 0)")
    sizes = {size for values in hosts.values() if (size := _trays(values))}
    if sizes and len(hosts) > min(sizes):
        problems.append(f"{VARIABLE} {name}: got {len(hosts)} hosts, wanted at most {min(sizes)} ({TRAYS})")
    return problems


def _owners(name: str, owners: t.Mapping[str, str]) -> list[str]:
    """One owner for the whole of a domain: the DRA driver's daemons and the hosts' make no domain together."""
    by = {owner: [host for host, one in owners.items() if one == owner] for owner in OWNERS}
    named = [f"{owner} on {some(hosts)}" for owner, hosts in by.items() if hosts]
    if len(named) < 2:
        return []
    return [f"{VARIABLE} {name}: {OWNER}: got {'; '.join(named)}; wanted one owner for all its hosts"]


def domains(hosts: t.Mapping[str, Values]) -> dict[str, dict[str, t.Any]]:
    """By name, of all hosts of the inventory in its order."""
    members: dict[str, dict[str, Values]] = {}
    for host, values in hosts.items():
        if values.get(VARIABLE):
            members.setdefault(str(values[VARIABLE]), {})[host] = values
    return {name: _domain(name, found) for name, found in members.items()}


def _answers(given: Answers | None, hosts: t.Sequence[str], key: str) -> dict[str, t.Mapping[str, t.Any]]:
    """Of a host that failed or was skipped there is none."""
    return {host: given[host] for host in hosts if given and key in (given.get(host) or {})}


def _refused(name: str, missing: t.Sequence[str]) -> dict[str, t.Any]:
    why = f"of nvlink_domain {name}: not in this run (or only verified), not reachable, or failed in it; the list is " \
        "changed on all its hosts or on none"
    return {"action": "deferred", "missing": list(missing), "deferred": [entry(some(missing), why)]}


def _stopped(name: str, hosts: t.Sequence[str], batch: t.Collection[str], stops: Answers) -> dict[str, t.Any] | None:
    """None: nobody was asked to stop. All of them stopped, or what has stopped is started again as it was."""
    asked = _answers(stops, hosts, "running")
    if not asked:
        return None
    runs = [host for host in hosts if host not in asked or host not in batch or asked[host]["running"]]
    if not runs:
        return {"action": "restart", "missing": [], "deferred": []}
    held = [entry(f"{host}: {one['holder']}", one["why"]) for host in runs if host in asked
            for one in asked[host].get("deferred") or ()]
    silent = [host for host in runs if host not in asked or not asked[host].get("deferred")]
    held += [entry(some(silent), f"did not stop {UNIT}")] if silent else []
    return {"action": "called_off", "missing": [], "deferred": held}


def decide(name: str, hosts: t.Sequence[str], batch: t.Collection[str], reads: Answers | None,
           users: Answers | None = None, stops: Answers | None = None, restart: bool = False) -> dict[str, t.Any]:
    """What is next for the domain: nothing, deferred, join (no daemon runs with another list), restart, called_off.

    ``restart`` is an operator's word, for daemons that are blocked although all that can be read is right.
    """
    if stops is not None and (found := _stopped(name, hosts, batch, stops)):
        return found
    known = _answers(reads, [host for host in hosts if host in batch], "restart_required")
    mixed = _owners(name, {host: str(one.get("owner")) for host, one in known.items()})
    if mixed:
        return {"action": "deferred", "missing": [], "deferred": [entry(OWNER, mixed[0])]}
    restarts = [host for host, one in known.items()
                if one["restart_required"] or (restart and one["owner"] != "dra" and one["running"])]
    joins = [host for host, one in known.items() if one["join_required"]]
    if not restarts and not joins:
        return {"action": "none", "missing": [], "deferred": []}
    missing = [host for host in hosts if host not in known]
    if missing:
        return _refused(name, missing)
    if not restarts:
        return {"action": "join", "missing": [], "deferred": []}
    if users is None:
        return {"action": "restart", "missing": [], "deferred": []}
    answers = _answers(users, [host for host in hosts if host in batch], "deferred")
    missing = [host for host in hosts if host not in answers]
    if missing:
        return _refused(name, missing)
    held = [entry(f"{host}: {one['holder']}", one["why"]) for host in hosts for one in answers[host]["deferred"]]
    return {"action": "deferred" if held else "restart", "missing": [], "deferred": held}
