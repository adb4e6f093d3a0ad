# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The files that this module owns, and what the kernel's module takes from them. Pure."""
from __future__ import annotations

import re
import typing as t

from .._gpu import parse_driver
from .._gpu.judge_driver import effective
from .._gpu.model import Setting
from .._host.errors import Problem
from .model import DWORDS, HEADER, OPTIONS_FILE, Node, Request

_NAME = re.compile(r"[A-Za-z]\w*")
# A blank or a quote would end the value for modprobe, which knows no other way to write them.
_BAD_VALUE = re.compile(r"[\s\"'#\\]")


def merge(module_options: t.Mapping[str, t.Any], registry_dwords: t.Mapping[str, t.Any]) -> dict[str, str]:
    """All options by name, NVreg_ left out; RegistryDwords is one string of its own and of ``registry_dwords``."""
    found = {}
    for name, value in module_options.items():
        text = str(int(value)) if isinstance(value, bool) else str(value)
        found[name[6:] if name.startswith("NVreg_") else name] = text
    dwords = parse_driver.dwords(found.pop(DWORDS, ""))
    for name, value in registry_dwords.items():
        dwords[name] = str(int(value)) if isinstance(value, bool) else str(value)
    if dwords:
        found[DWORDS] = "".join(f"{name}={value};" for name, value in sorted(dwords.items()))
    return dict(sorted(found.items()))


def conflicts(module_options: t.Mapping[str, t.Any], registry_dwords: t.Mapping[str, t.Any]) -> list[Problem]:
    """A key that both name, with two values."""
    given = parse_driver.dwords(str(module_options.get(DWORDS, module_options.get(f"NVreg_{DWORDS}", ""))))
    return [Problem(f"{DWORDS} {name}", f"{given[name]} and {value}", "one value",
                    "name it in registry_dwords only") for name, value in registry_dwords.items()
            if name in given and given[name] != str(value)]


def wrong(options: t.Mapping[str, str]) -> list[Problem]:
    found = [Problem("module_options", repr(name), "a name such as CreateImexChannel0") for name in options
             if not _NAME.fullmatch(name)]
    return found + [Problem(f"module_options {name}", repr(value), "a value without blanks, quotes and #")
                    for name, value in options.items() if _BAD_VALUE.search(value)]


def options_text(request: Request) -> str:
    """The file of modprobe.d. A ban of nouveau stands here also where a package has one: it may take its own away."""
    lines = ["blacklist nouveau", "options nouveau modeset=0"]
    if request.module_options:
        pairs = " ".join(f'NVreg_{name}="{value}"' if name == DWORDS else f"NVreg_{name}={value}"
                         for name, value in request.module_options.items())
        lines.append(f"options nvidia {pairs}")
    return HEADER + "".join(f"{line}\n" for line in lines)


def pin_text(request: Request) -> str:
    """All packages of NVIDIA that have the driver's version, those that others pull in as well.

    1001: apt goes back to it, too, from a newer one [apt_preferences(5)]. The dash is the end of the version.
    """
    return f"{HEADER}Package: *nvidia*\nPin: version {request.version}-*\nPin-Priority: 1001\n"


def not_in_force(request: Request, node: Node) -> list[str]:
    """Options that the loaded module has otherwise than wanted. Those that it does not show are not judged."""
    if node.in_force is None:
        return []
    found = []
    others = effective(one for one in node.settings if one.file != OPTIONS_FILE)
    for name, value in request.module_options.items():
        there = node.in_force.get(name)
        other = others.get(name)
        # Against a file of somebody else a reload would not help; that is a finding.
        if there is None or (other and not parse_driver.same_parameter(name, other.value, value)):
            continue
        if not parse_driver.same_parameter(name, there, value):
            found.append(f"NVreg_{name} is {there or 'empty'}, wanted {value}")
    return found


def findings(request: Request, node: Node) -> list[Problem]:
    """Options of others that ours meet, and names that the module does not have."""
    found = []
    others = [one for one in node.settings if one.file != OPTIONS_FILE]
    for name, setting in effective(others).items():
        wanted = request.module_options.get(name)
        if wanted is not None and not parse_driver.same_parameter(name, wanted, setting.value):
            found.append(_twice(name, setting, wanted))
    unknown = sorted(set(request.module_options) - node.driver.options) if node.driver.options else []
    shown = set(node.in_force or ())
    return found + [Problem(f"NVreg_{name}", "no option of the module on disk", "an option that it has",
                            "misspelt, of another branch, or a key of registry_dwords")
                    for name in unknown if name not in shown]


def _twice(name: str, setting: Setting, wanted: str) -> Problem:
    hint = "they do not add up, the last file wins; move it here with registry_dwords" if name == DWORDS else \
        "the last file wins; remove it there"
    got, want = f"{setting.value} in {setting.file}", f"{wanted}, set in {OPTIONS_FILE} alone"
    return Problem(f"NVreg_{name}", got, want, hint)
