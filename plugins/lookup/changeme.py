# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: changeme
short_description: What is still marked CHANGEME in an inventory
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Reads the files of inventory sources on the controller, with their C(group_vars) and C(host_vars), and returns one
    text for each line that has the word CHANGEME - in a value, in a key, or in a comment beside a value that works as
    an example.
  - Who has looked at a value removes the mark. Files and values that C(ansible-vault) has encrypted are skipped.
options:
  _terms:
    description: Inventory sources, usually the variable C(ansible_inventory_sources). Lists of hosts are skipped.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: What is left to do
  ansible.builtin.debug:
    msg: "{{ query('aidc.gpu_cluster.changeme', *ansible_inventory_sources) }}"
"""

RETURN = r"""
_raw:
  description: One text for each line - file, number of the line, key.
  type: list
  elements: str
"""

import typing as t

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.changeme import left


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: t.Any = None, **kwargs: t.Any) -> list[str]:
        self.set_options(var_options=variables, direct=kwargs)
        try:
            return [one.text() for one in left(str(term) for term in terms)]
        except OSError as error:
            raise AnsibleLookupError(f"changeme: {error}; check the files of the inventory") from error
