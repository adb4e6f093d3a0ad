# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""From the intent and the ports that are there: which calls, with which options, and what their results say. Pure."""
from __future__ import annotations

import typing as t

from .._host.errors import AidcError, Problem
from .._intent.model import LISTS, SECTIONS, Intent
from .model import Call, Deed, Drift, Present, Reason, Round

# Nothing is saved at a boot, and nobody's traffic is stopped; GIDs are waited for over all sections, not in a call.
_FORCED: dict[str, dict[str, t.Any]] = {
    "rail_network": {"persistent": False}, "mlx5_port": {"runtime": True, "persistent": False},
    "roce_qos": {"persistent": False}, "roce_gid": {"persistent": False, "missing": "report"},
}
_POLICY = "disruption_policy"


def wanted_ports(intent: Intent) -> tuple[str, ...]:
    """PCI addresses of all sections, each once."""
    return tuple(dict.fromkeys(str(entry["pci"]).strip().lower() for name in SECTIONS if name in intent.sections
                               for entry in intent.sections[name][LISTS[name]]))


def calls(intent: Intent, ready: t.Container[str]) -> list[Call]:
    """In the order of playbooks/fabric.yml, with the ports that are ready; a section without any is left out."""
    found = []
    for name in SECTIONS:
        if name not in intent.sections:
            continue
        options, listed = intent.sections[name], LISTS[name]
        entries = [entry for entry in options[listed] if str(entry["pci"]).strip().lower() in ready]
        policy = {_POLICY: "if_idle"} if _POLICY in options else {}
        if entries:
            found.append(Call(name, {**options, **policy, **_FORCED[name], listed: entries}))
    return found


def single(call: Call) -> list[Call]:
    """The call once for each of its ports, so that one does not hinder the others."""
    listed = LISTS[call.section]
    entries = call.options[listed]
    return [Call(call.section, {**call.options, listed: [entry]}) for entry in entries] if len(entries) > 1 else []


def lacking(intent: Intent, present: Present, reason: Reason) -> list[Drift]:
    """Ports that are not there. A port that comes later has an event of its own, so that of another does not wait."""
    waited = wanted_ports(intent) if reason.kind != "udev" else (reason.port,)
    return [Drift("ports", f"{pci}: {present.lacking[pci]}", pci) for pci in waited if pci in present.lacking]


def _port_of(step: t.Mapping[str, t.Any]) -> str | None:
    return step.get("pci") or ", ".join(step.get("netdevs") or ()) or None


def _unfinished(section: str, result: t.Mapping[str, t.Any]) -> list[Drift]:
    """What a call has found and left as it is."""
    found = [Drift(section, problem.text()) for problem in result.get("drift", ())]
    found += [Drift(section, f"{entry.get('netdev')}: in use, so it was left alone: {', '.join(entry['holders'])}",
                    entry.get("pci")) for entry in result.get("deferred", ())]
    if section == "roce_gid":
        found += [Drift(section, f"{entry['pci']} ({entry['netdev']}): no GID that fits", entry["pci"])
                  for entry in result["ports"] if entry["gid"] is None]
    return found


def outcome(section: str, result: t.Mapping[str, t.Any], check_mode: bool) -> Round:
    """What a call's result comes to; in check mode its steps are what differs."""
    rest = tuple(_unfinished(section, result))
    if check_mode:
        return Round(drift=(*(Drift(section, step["why"], _port_of(step), tuple(step["command"]))
                              for step in result["steps"]), *rest))
    return Round(tuple(Deed(section, tuple(step["command"]), step["why"]) for step in result["steps"]), rest)


def failure(section: str, error: AidcError) -> Round:
    """A call that could not do its work."""
    return Round(tuple(Deed(section, tuple(command), "before the error") for command in error.done),
                 tuple(Drift(section, problem.text()) for problem in error.problems))


def wrong(section: str, problems: t.Sequence[Problem]) -> Round:
    return Round(drift=tuple(Drift(section, problem.text()) for problem in problems))
