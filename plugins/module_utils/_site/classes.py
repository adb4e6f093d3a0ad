# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Node classes in an inventory: are their variables sound, and what do hosts say differently? Pure and total."""
from __future__ import annotations

import json
import re
import typing as t

CLASSES = ("gb200", "l40s", "epyc9754")
PREFIX = "node_class_"
NAME = f"{PREFIX}name"
Hosts = t.Mapping[str, t.Mapping[str, t.Any]]
_PCI_ID = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}")


def _integer(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: t.Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _ids(value: t.Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and _PCI_ID.fullmatch(one) for one in value)


_COUNT = (_integer, "a whole number, 0 if the class does not say")
_FIGURE = (_number, "a number, 0 if the class does not say")
_ID_LIST = (_ids, "a list of PCI ids such as ['15b3:1021'], in lower case")
# Variable without its prefix -> (test, what is wanted).
CHECKS: dict[str, tuple[t.Callable[[t.Any], bool], str]] = {
    "name": (lambda value: value in CLASSES, f"one of {', '.join(CLASSES)}"),
    "architecture": (lambda value: value in ("aarch64", "x86_64"), "aarch64 or x86_64, as `uname -m` says"),
    "gpu_count": _COUNT,
    "gpu_pci_ids": _ID_LIST,
    "nvlink_domain_trays": _COUNT,
    "nic_pci_ids": _ID_LIST,
    "rail_count": _COUNT,
    "rail_speed_gbps": _FIGURE,
    "rail_link_layer": (lambda value: value in ("Ethernet", "InfiniBand"), "Ethernet or InfiniBand"),
    "rail_pcie_speed_gts": _FIGURE,
    "rail_pcie_width": (lambda value: value in (0, 1, 2, 4, 8, 16, 32), "1, 2, 4, 8, 16 or 32, or 0"),
    "cpu_cores": _COUNT,
}
VARIABLES = tuple(f"{PREFIX}{name}" for name in CHECKS)


def class_problems(values: t.Mapping[str, t.Any], node_class: str) -> list[str]:
    """What is wrong with the class variables of a host in the group ``node_class``. None must be set."""
    found = []
    for name, (good, wanted) in CHECKS.items():
        variable = f"{PREFIX}{name}"
        if variable in values and not good(values[variable]):
            found.append(f"{variable}: got {values[variable]!r}, wanted {wanted}")
    unknown = sorted(name for name in values if name.startswith(PREFIX) and name not in VARIABLES)
    found += [f"{name}: got a variable that no class has, wanted one of {', '.join(VARIABLES)}" for name in unknown]
    if not found and values.get(NAME, node_class) != node_class:
        found.append(f"{NAME}: got {values[NAME]}, wanted {node_class}, the host's group")
    rails, count = values.get("mlx5_port_rails"), values.get(f"{PREFIX}rail_count")
    if not found and isinstance(rails, list) and count and len(rails) != count:
        found.append(f"{PREFIX}rail_count: got {count}, wanted {len(rails)}, as mlx5_port_rails has; or other rails")
    return found


def domain_problems(hosts: Hosts) -> list[str]:
    """NVLink domains with more trays than fit."""
    members: dict[str, list[str]] = {}
    for host, values in hosts.items():
        if values.get("nvlink_domain"):
            members.setdefault(str(values["nvlink_domain"]), []).append(host)
    found = []
    for domain, names in members.items():
        limits = [hosts[name].get(f"{PREFIX}nvlink_domain_trays") for name in names]
        most = max((int(limit) for limit in limits if limit is not None and _integer(limit)), default=0)
        if most and len(names) > most:
            found.append(f"nvlink_domain {domain}: got {len(names)} hosts ({names[0]} ... {names[-1]}), wanted at most "
                         f"{most} (node_class_nvlink_domain_trays)")
    return found


def is_template(value: t.Any) -> bool:
    return isinstance(value, str) and "{{" in value


def _text(value: t.Any) -> str:
    """For comparison and for the reader: the same value is the same text, whatever type the engine gave it."""
    return json.dumps(value, sort_keys=True, default=str)


def _lines(node_class: str, key: str, wanted: t.Any, names: t.Sequence[str], hosts: Hosts) -> list[str]:
    others: dict[str, list[str]] = {}
    for name in names:
        if not hosts[name].get(NAME) and key not in hosts[name]:
            continue
        got = _text(hosts[name][key]) if key in hosts[name] else "not set"
        if got != _text(wanted):
            others.setdefault(got, []).append(name)
    return [f"{node_class}: {key}: class {_text(wanted)}, here {got}: {_who(found, names)}"
            for got, found in others.items()]


def _who(found: t.Sequence[str], names: t.Sequence[str]) -> str:
    return f"all {len(found)} hosts" if len(found) == len(names) > 1 else ", ".join(found)


def deviations(
    hosts: Hosts, members: t.Mapping[str, t.Sequence[str]], classes: t.Mapping[str, t.Mapping[str, t.Any]],
) -> list[str]:
    """One line for each class, key and value that hosts have other than their class.

    ``members`` names the hosts of each class in order. A value that the class derives from others (a template) is
    not compared: what it is derived from is. Of a host that does not have the class at all only that is said, and
    what it sets itself.
    """
    lines = []
    for node_class, names in members.items():
        without = [name for name in names if not hosts[name].get(NAME)]
        if without and classes.get(node_class):
            lines.append(f"{node_class}: the class is not in use (inventories/classes/{node_class}.yml as "
                         f"group_vars/{node_class}/00-class.yml): {_who(without, names)}")
        for key, wanted in classes.get(node_class, {}).items():
            if not is_template(wanted):
                lines += _lines(node_class, key, wanted, names, hosts)
    return lines
