# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: fleet_record
short_description: Reads the stored facts of all hosts in one pass
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Returns the fleet record of one kind, as a mapping of host name to record. It reads one folder on the controller and
    never looks at C(hostvars).
  - A record has the keys RV(ignore:schema_version), RV(ignore:kind), RV(ignore:host), RV(ignore:time) (UTC),
    RV(ignore:run_id) and RV(ignore:data), which is the module's result.
options:
  _terms:
    description: Kinds of records; a kind is the name of the module that made it.
    type: list
    elements: str
    required: true
  state_dir:
    description:
      - State directory on the controller. Without it, that of the variable C(aidc_state_dir), else C(.state) beside the
        inventory.
    type: str
seealso:
  - module: aidc.gpu_cluster.mlx5_info
"""

EXAMPLES = r"""
- name: Show the firmware of every device of the fleet
  ansible.builtin.debug:
    msg: "{{ item.key }}: {{ item.value.data.devices | map(attribute='firmware_version') | join(', ') }}"
  loop: "{{ lookup('aidc.gpu_cluster.fleet_record', 'mlx5_info', state_dir='/srv/inventory/.state') | dict2items }}"
"""

RETURN = r"""
_raw:
  description: One mapping of host name to record for each kind asked for; empty where nothing was stored yet.
  type: list
  elements: dict
"""

import typing as t
from pathlib import Path

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import store
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet.record import RecordError
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.state import state_dir


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: t.Any = None, **kwargs: t.Any) -> list[dict[str, t.Any]]:
        self.set_options(var_options=variables, direct=kwargs)
        folder = self.get_option("state_dir") or state_dir(variables or {}, t.cast("t.Any", self._templar).template)
        if not folder:
            raise AnsibleLookupError("fleet_record: state_dir: got nothing, wanted a folder; set aidc_state_dir")
        try:
            return [store.load(Path(str(folder)), str(kind)) for kind in terms]
        except RecordError as error:
            raise AnsibleLookupError(str(error)) from error
