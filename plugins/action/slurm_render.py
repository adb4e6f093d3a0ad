# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import re
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet.record import RecordError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import render_argspec, render_cluster
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils import slurm_inventory
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.state import VARIABLE, state_dir


class ActionModule(ActionBase):
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        variables = task_vars or {}
        result: dict[str, t.Any] = super().run(tmp, variables)
        unknown = sorted(set(self._task.args) - set(render_argspec.RENDER))
        if unknown:
            raise AnsibleActionFail(f"slurm_render: got the options {', '.join(unknown)}, which it does not have")
        given = slurm_inventory.given(self._task.args, variables, self._templar.template)
        checked = ArgumentSpecValidator(render_argspec.RENDER).validate(given)
        if checked.error_messages:
            raise AnsibleActionFail(f"slurm_render: {'; '.join(checked.error_messages)}")
        rendered = self._render(checked.validated_parameters, variables)
        result.update(rendered.result(), changed=False)
        if rendered.errors:
            result.update(failed=True, files={}, sha256={}, absent=[],
                          msg="; ".join(finding.text() for finding in rendered.errors) + ". Nothing was rendered.")
        return result

    def _render(self, args: dict[str, t.Any], variables: dict[str, t.Any]) -> render_cluster.Rendered:
        folder = state_dir(variables, self._templar.template)
        try:
            inventory = slurm_inventory.inventory(variables["hostvars"], variables["groups"], folder, args)
        except RecordError as error:
            raise AnsibleActionFail(f"slurm_render: {error} ({VARIABLE})") from error
        except re.error as error:
            raise AnsibleActionFail(f"slurm_render: leaf_groups: got {args['leaf_groups']!r}, wanted a regular "
                                    f"expression ({error})") from error
        return render_cluster.render(args, inventory)
