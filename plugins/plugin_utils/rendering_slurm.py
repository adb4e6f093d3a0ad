# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Slurm's files for the action plugin render: what the role slurm would give to slurm_render, without a host."""
from __future__ import annotations

import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._site import render as site
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import render_argspec, render_cluster

from . import slurm_inventory
from .role_tasks import HostView, Role

ROLE = "slurm"
_ACTION = "aidc.gpu_cluster.slurm_render"


def render(hostvars: t.Any, groups: t.Mapping[str, t.Sequence[str]], view: HostView,
           role: Role | None) -> render_cluster.Rendered:
    """The fleet record is left out: with the same inventory the files are the same."""
    given_by_task = [view.args(task) for task in role.tasks("configure", _ACTION)] if role else []
    own = {name: value for args in given_by_task for name, value in args.items() if name in render_argspec.RENDER}
    known = {name: view.value(name) for name in (f"{slurm_inventory.PREFIX}{name}" for name in render_argspec.RENDER)
             if name in view.values}
    given = slurm_inventory.given({**own, "use_records": False}, known, lambda value: value)
    checked = ArgumentSpecValidator(render_argspec.RENDER).validate(given)
    if checked.error_messages:
        raise site.RenderError("; ".join(checked.error_messages))
    args = checked.validated_parameters
    return render_cluster.render(args, slurm_inventory.inventory(hostvars, groups, None, args))
