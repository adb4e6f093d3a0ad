# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import contextlib
import typing as t
from pathlib import Path

import yaml
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover import argspec, propose, read, table, write
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover.model import ClassError, NodeClass, node_class
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.files import read_text, write_atomic
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.fleet_lock import fleet_lock

FILE_MODE = 0o644


def load_classes(folder: Path) -> list[NodeClass]:
    """The class files of a folder in the order of their names."""
    found = []
    for path in sorted(folder.glob("*.yml")) if folder.is_dir() else ():
        try:
            text = path.read_text(encoding="utf-8")
            found.append(node_class(str(path), yaml.safe_load(text), text))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise AnsibleActionFail(f"{path}: {error}; wanted variables of a node class") from error
        except ClassError as error:
            raise AnsibleActionFail(str(error)) from error
    names = [one.name for one in found]
    if not found or len(set(names)) != len(names):
        raise AnsibleActionFail(f"classes_dir: got {', '.join(names) or 'no class file'} in {folder}, wanted one file "
                                "for each node class; name the folder in aidc_discover_classes_dir")
    return found


def _connection(variables: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    values = {key: variables[key] for key in write.CONNECTION if variables.get(key) is not None}
    return {key: int(value) if isinstance(value, int) else str(value) for key, value in values.items()}


def _as_data(one: propose.Proposal) -> dict[str, t.Any]:
    return {"host": one.host.name, "group": one.group, "why": one.why, "rails": [rail.pci for rail in one.rails],
            "subnets": list(one.subnets), "leaf": one.leaf, "nvlink_domain": one.nvlink_domain,
            "node_index": one.node_index, "needs_root": list(one.host.needs_root)}


class ActionModule(ActionBase):
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        variables = task_vars or {}
        result: dict[str, t.Any] = super().run(tmp, variables)
        _valid, args = self.validate_argument_spec(argspec.DISCOVER)
        classes, hostvars = load_classes(Path(args["classes_dir"])), variables["hostvars"]
        hosts = [read.host(name, hostvars[name].get(args["host_info"]), hostvars[name].get(args["mlx5_info"]))
                 for name in args["hosts"]]
        fleet = propose.fleet(hosts, classes)
        files = write.files(fleet, {name: _connection(hostvars[name]) for name in args["hosts"]})
        changed, refused = self._write(Path(args["directory"]), files, bool(args["force"]))
        result.update(
            changed=bool(changed), hosts=[_as_data(one) for one in fleet.proposals], table=table.hosts_table(fleet),
            rails_table=table.rails_table(fleet), differences=table.differences(fleet), files=changed, refused=refused,
            differences_table=table.differences_table(fleet), directory=args["directory"],
        )
        return result

    def _write(self, folder: Path, files: t.Mapping[str, str], force: bool) -> tuple[list[str], list[str]]:
        """Paths written, and those that are there with another text, for which nothing is written."""
        check_mode = bool(self._task.check_mode)
        try:
            if not check_mode:
                # An inventory may be read by others, unlike what the lock makes.
                folder.mkdir(parents=True, exist_ok=True)
            with contextlib.nullcontext() if check_mode else fleet_lock(folder, "discover", "aidc_discover_dir"):
                there = {name: read_text(folder / name) for name in files}
                refused = [name for name, text in there.items() if text not in (None, files[name])]
                if refused and not force:
                    return [], [str(folder / name) for name in refused]
                changed = [name for name, text in there.items() if text != files[name]]
                for name in () if check_mode else changed:
                    write_atomic(folder / name, files[name], FILE_MODE)
        except OSError as error:
            raise AnsibleActionFail(f"{error.filename or folder}: {error.strerror or error}; wanted a folder that can "
                                    "be written; name another in aidc_discover_dir") from error
        return [str(folder / name) for name in changed], []
