# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""From the canonical input (DSCP, priority, CNP) to the wanted state of each port, cross-checked. Pure."""
from __future__ import annotations

import typing as t

from .._host.errors import Problem
from .model import DEFAULT_MAP, DSCPS, GROUPS, NEGOTIATED, PRIORITIES, TCS, Request, Want, tos

# CNP_DSCP_P1 and CNP_802P_PRIO_P1 of the firmware [Mellanox/mstflint mlxconfig_host.db].
CNP_DSCP, CNP_PRIORITY = 48, 6
TSAS = ("strict", "ets", "vendor")
# mlx5 takes 0 < metres < 1000 and ignores others without an error [mlx5 en_dcbnl.c, mlx5e_dcbnl_ieee_setpfc].
MAX_CABLE_METRES = 999
BUFFERS = 8
# Options that a port may have of its own; what it does not give, it takes from the top.
OPTIONS = ("dscp", "priority", "lossless", "trust", "ecn", "bandwidth_percent", "ets", "buffer", "cable_length_metres",
           "dcbx_owner", "unmanaged_groups", "require_groups")


class _Checker:
    """Collects what is wrong with the options of one port."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.problems: list[Problem] = []

    def bad(self, option: str, got: t.Any, wanted: str, hint: str = "") -> None:
        self.problems.append(Problem(f"{option} of {self.name}", str(got), wanted, hint))

    def within(self, option: str, value: int, most: int, least: int = 0) -> None:
        if not least <= value <= most:
            self.bad(option, value, f"{least} to {most}")

    def eight(self, option: str, values: t.Sequence[t.Any], allowed: t.Container[t.Any], words: str) -> bool:
        if len(values) != TCS or any(value not in allowed for value in values):
            self.bad(option, ",".join(map(str, values)), f"eight of {words}")
            return False
        return True


def dscp_map(dscp: int, priority: int, cnp_dscp: int, cnp_priority: int) -> list[int]:
    """All 64 entries: the driver's own map with the two classes put in."""
    found = list(DEFAULT_MAP)
    found[dscp] = priority
    found[cnp_dscp] = cnp_priority
    return found


def default_ets(priority: int, cnp_priority: int, percent: int) -> dict[str, t.Any]:
    """Priority n in class n; the CNP class strict, so that a full queue never delays it; RoCE gets its share and the
    other classes divide the rest, what does not divide going to class 0 or, if that is taken, the next one."""
    others = [tc for tc in range(TCS) if tc not in (priority, cnp_priority)]
    share, left = divmod(100 - percent, len(others))
    bandwidth = [0] * TCS
    for tc in others:
        bandwidth[tc] = share
    bandwidth[others[0]] += left
    bandwidth[priority] = percent
    return {"prio_tc": list(range(PRIORITIES)),
            "tc_tsa": ["strict" if tc == cnp_priority else "ets" for tc in range(TCS)], "tc_bw": bandwidth}


def _ets(check: _Checker, options: t.Mapping[str, t.Any], cnp_priority: int) -> dict[str, t.Any] | None:
    given = options["ets"]
    if given is None:
        check.within("bandwidth_percent", options["bandwidth_percent"], 99, 1)
        return default_ets(options["priority"], cnp_priority, options["bandwidth_percent"])
    prio_tc, tsa, bandwidth = (given[key] for key in ("prio_tc", "tc_tsa", "tc_bw"))
    fits = [check.eight("ets.prio_tc", prio_tc, range(TCS), "0 to 7"),
            check.eight("ets.tc_tsa", tsa, TSAS, ", ".join(TSAS)),
            check.eight("ets.tc_bw", bandwidth, range(101), "0 to 100")]
    if not all(fits):
        return None
    text = ",".join(map(str, bandwidth))
    total = sum(value for value, kind in zip(bandwidth, tsa) if kind == "ets")
    if "ets" in tsa and total != 100:
        check.bad("ets.tc_bw", f"{text}, together {total}", "100 over the classes with ets")
    if any(value for value, kind in zip(bandwidth, tsa) if kind != "ets"):
        check.bad("ets.tc_bw", text, "0 for a class that is not ets")
    if prio_tc[options["priority"]] == prio_tc[cnp_priority]:
        check.bad("ets.prio_tc", f"traffic class {prio_tc[cnp_priority]} for RoCE data and for CNP",
                  "a traffic class for each", "a CNP that waits behind the data it should slow down comes too late")
    return {"prio_tc": list(prio_tc), "tc_tsa": list(tsa), "tc_bw": list(bandwidth)}


def _buffer(check: _Checker, options: t.Mapping[str, t.Any]) -> dict[str, list[int]] | None:
    given = options["buffer"]
    if given is None:
        return None
    prio_buffer, sizes = given["prio_buffer"], given["buffer_size_bytes"]
    fits = [check.eight("buffer.prio_buffer", prio_buffer, range(BUFFERS), "0 to 7"),
            check.eight("buffer.buffer_size_bytes", sizes, range(1 << 31), "numbers of bytes")]
    if not all(fits):
        return None
    if options["lossless"] and not sizes[prio_buffer[options["priority"]]]:
        check.bad("buffer.buffer_size_bytes", f"0 for buffer {prio_buffer[options['priority']]}",
                  f"a size, as it is the one of lossless priority {options['priority']}",
                  "take sizes from the fabric's owner; the driver answers EINVAL")
    return {"prio_buffer": list(prio_buffer), "buffer_size": list(sizes)}


def _classes(check: _Checker, dscp: int, priority: int, cnp_dscp: int, cnp_priority: int) -> bool:
    check.within("dscp", dscp, DSCPS - 1)
    check.within("priority", priority, PRIORITIES - 1)
    check.within("cnp.dscp", cnp_dscp, DSCPS - 1)
    check.within("cnp.priority", cnp_priority, PRIORITIES - 1)
    if check.problems:
        return False
    if priority == cnp_priority:
        check.bad("cnp.priority", f"{cnp_priority}, the priority of RoCE data", "another priority",
                  "PFC would stop the CNPs together with the data")
    if dscp == cnp_dscp:
        check.bad("cnp.dscp", f"{cnp_dscp}, the DSCP of RoCE data", "another DSCP")
    return not check.problems


def want(pci: str, options: t.Mapping[str, t.Any]) -> tuple[Want, list[Problem]]:
    """``options`` are complete: the port's own over those of the call."""
    check = _Checker(pci)
    dscp, priority = options["dscp"], options["priority"]
    cnp_dscp, cnp_priority = options["cnp_dscp"], options["cnp_priority"]
    if not _classes(check, dscp, priority, cnp_dscp, cnp_priority):
        return Want(pci, {}), check.problems
    state: dict[str, t.Any] = {
        "dcbx": options["dcbx_owner"], "trust": options["trust"],
        "dscp_map": dscp_map(dscp, priority, cnp_dscp, cnp_priority) if options["trust"] == "dscp" else None,
        "ets": _ets(check, options, cnp_priority), "cable_length": options["cable_length_metres"],
        "buffer": _buffer(check, options), "pfc": [priority] if options["lossless"] else [],
        "ecn": {"priority": priority, "np": options["ecn"], "rp": options["ecn"]},
        "cnp": {"dscp": cnp_dscp, "priority": cnp_priority}, "cm_tos": tos(dscp), "traffic_class": tos(dscp),
    }
    if state["cable_length"] is not None:
        check.within("cable_length_metres", state["cable_length"], MAX_CABLE_METRES, 1)
    required, unmanaged = set(options["require_groups"]), set(options["unmanaged_groups"])
    for group in sorted(required & unmanaged):
        check.bad("require_groups", group, "a group that is managed", "it stands in unmanaged_groups")
    if options["dcbx_owner"] == "firmware":
        # What the firmware negotiates with the switch is not ours to set.
        unmanaged |= set(NEGOTIATED)
    managed = {group: state[group] for group in GROUPS if group not in unmanaged and state[group] is not None}
    for group in sorted(required - set(managed) - unmanaged):
        check.bad("require_groups", group, "a group with a value", "give the option that sets it")
    return Want(pci, managed, frozenset(required & set(managed)), "pfc" in managed and bool(managed["pfc"])), \
        check.problems


def _merged(params: t.Mapping[str, t.Any], port: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    found = {name: params[name] if port.get(name) is None else port[name] for name in OPTIONS}
    for key, default in (("dscp", CNP_DSCP), ("priority", CNP_PRIORITY)):
        values = [(source.get("cnp") or {}).get(key) for source in (port, params)]
        found[f"cnp_{key}"] = next((value for value in values if value is not None), default)
    return found


def request(params: t.Mapping[str, t.Any]) -> tuple[Request, list[Problem]]:
    """The call in our words, and everything that is wrong with it before the machine is looked at."""
    wants, problems = [], []
    for port in params["ports"]:
        # sysfs writes PCI addresses in lower case.
        one, bad = want(port["pci"].strip().lower(), _merged(params, port))
        wants.append(one)
        problems += bad
    return Request(tuple(wants), params["backend"], params["take_over"], params["disruption_policy"],
                   params["allow_management"]), problems
