# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What stands in the way on a node, what is to be done there, and what has to wait for others. Pure.

The daemon reads its files at its start only, and one whose list differs from the others' is blocked until all of them
are started again [driver-slurm-k8s.md trap 6]. So a running daemon's list is never replaced: it is stopped first, which
is the caller's to ask for on all nodes of the domain, and a list that is new here is not started beside unknown ones.
"""
from __future__ import annotations

import re

from .._gpu.model import Holder, Package, same_version
from .._gpu.tables import helper
from .._host.errors import Problem
from .._nvdriver.model import BROKEN, Step, Use
from . import parse
from .model import (
    CHANNELS,
    CONFIG_FILE,
    NODES_FILE,
    OWN_KEYS,
    PACKAGE,
    UNIT,
    Node,
    Request,
    plain_address,
)

# A file has whole seconds, and the time of a start is computed from two clocks.
CLOCK_SECONDS = 1.0
_KEY = re.compile(r"[A-Z][A-Z0-9_]*")


# -- what is wrong --------------------------------------------------------------------------------------------------


def values(request: Request) -> list[Problem]:
    """What can be told without the node. The DRA driver makes its own lists."""
    if not request.on_host:
        return []
    found = [Problem(f"nodes {node}", "no IP address", "an address such as 192.0.2.11",
                     "IMEX takes names, but each node may resolve them otherwise; set imex_domain_address")
             for node in request.nodes if plain_address(node) != node]
    twice = sorted({node for node in request.nodes if request.nodes.count(node) > 1})
    found += [Problem(f"nodes {node}", "listed twice", "each address once", "two hosts with one address?")
              for node in twice]
    if not request.nodes:
        found.append(Problem("nodes", "none", f"the addresses of all nodes of {request.of_domain()}", ""))
    for key, value in request.config.items():
        if not _KEY.fullmatch(key) or "\n" in value or "\r" in value:
            found.append(Problem(f"config {key}", repr(value), "a key such as LOG_LEVEL with a value on one line"))
        elif OWN_KEYS.get(key, value) != value:
            found.append(Problem(f"config {key}", value, OWN_KEYS[key], "it is set by this module; leave it out"))
    return found


def package(node: Node) -> Package | None:
    return next((one for one in node.packages if (kind := helper(one.name)) and kind.name == PACKAGE), None)


def _software(node: Node) -> list[Problem]:
    """IMEX speaks to others and to the driver of its own version only."""
    one = package(node)
    if one is None:
        return [Problem(f"package {PACKAGE}", "not installed", "of the driver's version",
                        "role nvidia_driver installs it with board nvl")]
    if one.state in BROKEN:
        return [Problem(f"package {one.name}", one.state, "installed", "dpkg --audit")]
    if node.driver is None:
        return [Problem("module nvidia", "not loaded", "a loaded driver", "role nvidia_driver; look at dmesg")]
    if not same_version(one.version, node.driver):
        return [Problem(f"package {one.name}", one.version, f"{node.driver}, as the driver that is loaded",
                        "a partial upgrade, or a reload of the driver that is pending; see role nvidia_driver")]
    return []


def _own_line(request: Request, node: Node) -> list[Problem]:
    """Else the daemon exits: No matching network interface found [dra-driver#289]."""
    mine = [one for one in request.nodes if one in node.addresses]
    if len(mine) == 1:
        return []
    there = ", ".join(sorted(node.addresses)) or "none"
    if not mine:
        return [Problem(NODES_FILE, "no address of this node", "exactly one",
                        f"this node has {there}; is imex_domain_address of this host right?")]
    return [Problem(NODES_FILE, f"{len(mine)} addresses of this node: {', '.join(mine)}", "exactly one",
                    "do two hosts of the inventory stand for this node?")]


def check(request: Request, node: Node) -> list[Problem]:
    """What refuses before anything is touched. To stop or mask the daemon nothing of it is needed."""
    found = list(node.problems)
    if not request.on_host or request.state in ("stopped", "resumed"):
        return found
    found += [Problem(f"owner {request.owner}", stray, f"no other daemon than {UNIT}",
                      "the two exclude each other (NV_ERR_IN_USE): end the ComputeDomain and hand the node over, or "
                      "set owner dra for all of the domain") for stray in node.strays]
    if request.state != "ready" and (not node.unit.is_running or stale(request, node)):
        found += before_a_start(request, node)
    return found


def before_a_start(request: Request, node: Node) -> list[Problem]:
    """What a daemon that runs is not failed for, and the next start of it would be."""
    return [*_software(node), *_own_line(request, node)] if request.on_host else []


# -- what is to be done ---------------------------------------------------------------------------------------------


def config_text(request: Request, node: Node) -> str:
    return parse.merge(node.config_file.text or "", request.keys)


def differences(request: Request, node: Node) -> list[str]:
    """What of the files is not as wanted, in words."""
    found = []
    if node.nodes_file.text != request.nodes_text:
        found.append(f"{NODES_FILE} is {'another list' if node.nodes_file.text else 'not there'}")
    have = parse.keys(node.config_file.text or "", request.keys)
    found += [f"{key} is {'not set' if have[key] is None else have[key] or 'empty'}, wanted {value}"
              for key, value in request.keys.items() if have[key] != value]
    if not found and config_text(request, node) != node.config_file.text:
        found.append(f"{CONFIG_FILE} sets a key twice")
    return found


def stale(request: Request, node: Node) -> list[str]:
    """Why the daemon that runs has not what is wanted; nothing if it has, or does not run."""
    if not node.unit.is_running or not request.on_host:
        return []
    found = differences(request, node)
    newer = [path for path, file in ((NODES_FILE, node.nodes_file), (CONFIG_FILE, node.config_file))
             if file.changed_at > node.unit.started_at + CLOCK_SECONDS]
    return found or [f"{path} was changed after the daemon's start" for path in newer]


def entry(holder: str, why: str) -> dict[str, str]:
    return {"holder": holder, "why": why}


def _of_process(holder: Holder) -> dict[str, str]:
    who = f"{holder.job} (pid {holder.pid} {holder.comm})" if holder.job else f"pid {holder.pid} {holder.comm}"
    return entry(who, f"has {', '.join(one for one in holder.files if one.startswith(CHANNELS))} open")


def busy(request: Request, use: Use) -> list[dict[str, str]]:
    """Who is in the way of a stop. A channel that is held is never pulled away, whatever the policy says."""
    if request.disruption_policy == "never":
        return [entry("disruption_policy", "is never")]
    found = [_of_process(one) for one in use.holders]
    if request.disruption_policy == "if_idle":
        found += [entry(text, "runs on this node") for text in use.steps]
        if use.unseen:
            found.append(entry(f"{use.unseen} processes", "could not be looked at; run as root"))
    return found


def _stop(why: str) -> Step:
    return Step(("systemctl", "stop", UNIT), why, "driver")


def _start(why: str) -> Step:
    return Step(("systemctl", "start", UNIT), why)


def _of_dra(node: Node) -> list[Step]:
    """Stopped, disabled and masked, or the DRA driver's daemon fails [driver-slurm-k8s.md trap 7]."""
    why = "owner is dra: the DRA driver starts its own daemon"
    found = [_stop(why)] if node.unit.is_running else []
    if not node.unit.is_masked:
        if node.unit.is_enabled or node.unit.enabled == "enabled-runtime":
            found.append(Step(("systemctl", "disable", UNIT), why))
        found.append(Step(("systemctl", "mask", UNIT), why))
    return found


def _enable(node: Node) -> list[Step]:
    if node.unit.is_masked:
        runtime = ("--runtime",) if node.unit.enabled == "masked-runtime" else ()
        return [Step(("systemctl", "unmask", *runtime, UNIT), "owner is the host"),
                Step(("systemctl", "enable", UNIT), "it comes back after a reboot")]
    return [] if node.unit.is_enabled else [Step(("systemctl", "enable", UNIT), "it comes back after a reboot")]


def _write(request: Request, node: Node) -> list[Step]:
    found = []
    if node.nodes_file.text != request.nodes_text:
        found.append(Step(("write", NODES_FILE), f"{len(request.nodes)} nodes of {request.of_domain()}",
                          text=request.nodes_text))
    text = config_text(request, node)
    if text != node.config_file.text:
        why = "; ".join(one for one in differences(request, node) if not one.startswith(NODES_FILE))
        found.append(Step(("write", CONFIG_FILE), why, text=text, mode=node.config_file.mode))
    return found


def steps(request: Request, node: Node) -> list[Step]:
    """All that may be done here; those that disturb somebody are for the caller to hold back."""
    if request.state == "ready":
        return []
    if not request.on_host:
        return [] if request.state in ("stopped", "resumed") else _of_dra(node)
    if request.state == "resumed":
        return [] if node.unit.is_running else [_start("the restart was called off")]
    if request.state == "stopped":
        return [_stop(f"restart of all of {request.of_domain()}")] if node.unit.is_running else []
    if node.unit.is_running:
        return _enable(node)
    if differences(request, node) and not request.may_join:
        # Not enabled either: at the next boot it would start with a list that the others may not have.
        return []
    start = [_start("it does not run")] if request.state == "started" else []
    return [*_write(request, node), *_enable(node), *start]


def waits(request: Request, node: Node) -> list[dict[str, str]]:
    """What is wanted here and not for this call alone to do."""
    if not request.on_host or request.state not in ("started", "configured"):
        return []
    old = stale(request, node)
    if old:
        return [entry(UNIT, f"runs with other settings ({'; '.join(old)}); all of {request.of_domain()} has to be "
                            "stopped before it is started again")]
    new = differences(request, node)
    if new and not node.unit.is_running and not request.may_join:
        return [entry(request.of_domain(), f"{'; '.join(new)}; a list that is new here is not written before all "
                                           "nodes of the domain were asked what they have (may_join)")]
    return []
