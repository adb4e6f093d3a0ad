# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import typing as t
from pathlib import Path

import yaml
from ansible.errors import AnsibleActionFail
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.recording import RecordingAction

DATA = Path(__file__).resolve().parents[2] / "roles" / "nvidia_driver" / "files"
_FILES = {"package_sets": ("package_sets.yml", "sets"), "known_bad": ("known_bad.yml", "rows")}
_DEEDS = {"before", "after", "commands", "steps", "diff"}


def shipped(option: str) -> t.Any:
    """Rows of a data file that comes with the collection."""
    name, key = _FILES[option]
    try:
        return yaml.safe_load((DATA / name).read_text(encoding="utf-8"))[key]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise AnsibleActionFail(f"{DATA / name}: got {error}, wanted a mapping with {key}") from error


class ActionModule(RecordingAction):
    """Hands the module the data that it was not given, as a managed node has no reader for YAML."""

    kind = "nvidia_driver"

    def _call(self, arguments: t.Mapping[str, t.Any], variables: dict[str, t.Any]) -> dict[str, t.Any]:
        given = dict(arguments)
        for option in _FILES:
            given[option] = given.get(option) or shipped(option)
        return super()._call(given, variables)

    def _is_fact(self, result: t.Mapping[str, t.Any]) -> bool:
        """What check mode says of a driver that it would load is a prediction."""
        return not (self._task.check_mode and result.get("changed"))

    def facts(self, data: dict[str, t.Any]) -> dict[str, t.Any]:
        return {key: value for key, value in data.items() if key not in _DEEDS}
