# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex import argspec, domain
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._site.variables import plain
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.slurm_inventory import ordered

Values = dict[str, t.Any]


def members(hostvars: t.Any, groups: t.Mapping[str, t.Sequence[str]]) -> dict[str, Values]:
    """The variables that matter, of all hosts with a domain. Templates of no others are rendered."""
    found = {}
    for host in ordered(hostvars, groups, "all"):
        raw = hostvars.raw_get(host)
        if domain.VARIABLE in raw:
            mine = hostvars[host]
            found[host] = {name: plain(mine[name]) for name in domain.VARIABLES if name in raw}
    return found


class ActionModule(ActionBase):
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        variables = task_vars or {}
        result: dict[str, t.Any] = super().run(tmp, variables)
        checked = ArgumentSpecValidator(argspec.PLAN).validate(dict(self._task.args))
        if checked.error_messages:
            raise AnsibleActionFail(f"imex_plan: {'; '.join(checked.error_messages)}")
        given = checked.validated_parameters
        known = given["domains"]
        if known is None:
            known = domain.domains(members(variables["hostvars"], variables["groups"]))
        result.update(changed=False, domains={name: self._decided(name, one, given) for name, one in known.items()})
        return result

    def _decided(self, name: str, one: Values, given: Values) -> Values:
        if given["reads"] is None:
            return one
        return {**one, **domain.decide(name, one["hosts"], given["batch"], given["reads"], given["users"],
                                       given["stops"], given["restart"])}
