# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: shipped_data
short_description: Data that comes with the collection
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Returns the node classes or the options of the roles as the collection has them, whatever an inventory makes of
    them.
options:
  _terms:
    description:
      - V(classes) is a mapping of class to its variables, from C(inventories/classes).
      - V(argument_specs) is a mapping of role to its options, from C(roles/*/meta/argument_specs.yml).
    type: list
    elements: str
    choices: [classes, argument_specs]
    required: true
"""

EXAMPLES = r"""
- name: How many rails a GB200 tray has
  ansible.builtin.debug:
    msg: "{{ lookup('aidc.gpu_cluster.shipped_data', 'classes').gb200.node_class_rail_count }}"
"""

RETURN = r"""
_raw:
  description: One mapping for each kind of data asked for.
  type: list
  elements: dict
"""

import typing as t
from pathlib import Path

import yaml
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

ROOT = Path(__file__).resolve().parents[2]


def _read(path: Path) -> t.Any:
    # The faster loader where PyYAML has one.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(path.read_text(encoding="utf-8"), loader)
    except (OSError, yaml.YAMLError) as error:
        raise AnsibleLookupError(f"shipped_data: {path}: {error}") from error


def classes() -> dict[str, t.Any]:
    return {path.stem: _read(path) for path in sorted((ROOT / "inventories" / "classes").glob("*.yml"))}


def argument_specs() -> dict[str, t.Any]:
    return {path.parents[1].name: _read(path)["argument_specs"]["main"]["options"]
            for path in sorted((ROOT / "roles").glob("*/meta/argument_specs.yml"))}


KINDS: dict[str, t.Callable[[], dict[str, t.Any]]] = {"classes": classes, "argument_specs": argument_specs}


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: t.Any = None, **kwargs: t.Any) -> list[dict[str, t.Any]]:
        self.set_options(var_options=variables, direct=kwargs)
        unknown = [str(term) for term in terms if str(term) not in KINDS]
        if unknown:
            raise AnsibleLookupError(f"shipped_data: got {', '.join(unknown)}, wanted one of {', '.join(KINDS)}")
        return [KINDS[str(term)]() for term in terms]
