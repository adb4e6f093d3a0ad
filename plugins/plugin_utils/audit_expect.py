# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The audit's expectations from an inventory, in one pass over its hosts.

Hosts of a class have mostly the same variables as they stand in the files, so templates are rendered once for all hosts
that have the same, and not once a host.
"""
from __future__ import annotations

import json
import re
import typing as t

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._audit import expect
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail import addresses, argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._site.variables import plain

from .role_tasks import ROOT, HostView, Role

_PLAN = (addresses.VARIABLE, addresses.SUBNETS, addresses.LEAF_END)
_ROLES = (*expect.ROLES, "nccl_gate", "fabric_audit")
# A template that names the host, or asks for another one's variables, is rendered for each host.
_OWN = ("inventory_hostname", "hostvars", "ansible_", addresses.INDEX)
_WORD = re.compile(r"[A-Za-z_]\w*")
Values = dict[str, t.Any]


def _origin(raw: t.Mapping[str, t.Any]) -> str:
    """The variables that are looked at as they stand in the files, and those that their templates name, and so on.

    Others are not touched, nor is what is encrypted.
    """
    found: Values = {}
    names = [name for name in expect.NAMES if name != addresses.INDEX]
    while names:
        name = names.pop()
        if name in raw and name not in found:
            text = json.dumps(raw[name], default=lambda one: type(one).__name__, sort_keys=True)
            found[name] = text
            names += _WORD.findall(text) if "{{" in text or "{%" in text else []
    return json.dumps(found, sort_keys=True)


class Inventory:
    """``hostvars`` is the engine's; the hosts are in the order of the inventory."""

    def __init__(self, hostvars: t.Any, hosts: t.Sequence[str], loader: t.Any) -> None:
        self.hostvars, self.loader = hostvars, loader
        self.roles = [Role(name, loader) for name in _ROLES if (ROOT / "roles" / name).is_dir()]
        self.policies: list[Values] = []
        self.values: list[Values] = []
        self.known: dict[str, int] = {}
        self.problems: list[str] = []
        self.of = {host: self._policy(host) for host in hosts}

    def _policy(self, host: str) -> int:
        raw = self.hostvars.raw_get(host)
        text = _origin(raw)
        key = f"{host} {text}" if any(word in text for word in _OWN) else text
        if key not in self.known:
            view = HostView(self.roles, raw, {"hostvars": self.hostvars}, self.loader)
            values = {name: plain(view.value(name)) for name in expect.NAMES if name in view.values}
            self.known[key] = len(self.policies)
            self.values.append(values)
            self.policies.append(self._made(host, values))
        return self.known[key]

    def _made(self, host: str, values: Values) -> Values:
        try:
            return expect.policy(values)
        except AidcError as error:
            self.problems += [f"{host}: {problem.text()}" for problem in error.problems]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self.problems.append(f"{host}: its variables: {type(error).__name__}: {error}; run playbooks/validate.yml")
        return {"common": {}, "rails": {}}

    def _index(self, host: str) -> t.Any:
        value = self.hostvars.raw_get(host).get(addresses.INDEX)
        if isinstance(value, str):
            return self.hostvars[host].get(addresses.INDEX)
        return value

    def _plan(self) -> dict[str, list[Values]]:
        """Rails of each host with addresses, as the role rail_network plans them."""
        fleet = {}
        for host, number in self.of.items():
            values = self.values[number]
            if values.get(addresses.VARIABLE) and not expect.off(values.get("rail_network_mode")):
                fleet[host] = {**{name: values.get(name) for name in _PLAN}, addresses.INDEX: self._index(host)}
        options, problems = addresses.plan(fleet)
        self.problems += [problem.text() for problem in problems]
        return options

    def _rails(self, host: str, options: t.Sequence[Values]) -> dict[str, list[t.Any]]:
        values = self.values[self.of[host]]
        subnets = values.get(addresses.SUBNETS) or []
        own = {rail["pci"]: rail.get("subnet") for rail in values.get(addresses.VARIABLE) or ()}
        found = {}
        for option in options:
            rail = option["rail"]
            want = argspec.wanted({**option, "mtu_bytes": 0})
            subnet = own.get(option["pci"]) or (subnets[rail] if rail < len(subnets) else None)
            found[want.pci] = [want.address, subnet, [*want.rules, *want.routes]]
        return found

    def document(self) -> Values:
        plan = self._plan()
        hosts = {host: {"pool": expect.pool(self.values[number]), "policy": number,
                        "allow": self.values[number].get("fabric_audit_allow") or [],
                        "rails": self._rails(host, plan.get(host, ()))}
                 for host, number in self.of.items()}
        return {"schema_version": expect.SCHEMA_VERSION, "policies": self.policies, "hosts": hosts}


def of_inventory(hostvars: t.Any, hosts: t.Sequence[str], loader: t.Any) -> tuple[Values, list[str]]:
    """The document, and why it is not sound."""
    inventory = Inventory(hostvars, hosts, loader)
    document = plain(inventory.document())
    return document, list(dict.fromkeys(inventory.problems))
