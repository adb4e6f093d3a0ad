# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.filter import inventory_problems

HOST = {"mlx5_port_rails": [{"rail": 0, "pci": "0000:81:00.0"}]}


def use(*arguments: t.Any) -> list[str]:
    found: list[str] = inventory_problems.FilterModule().filters()["inventory_problems"](*arguments)
    return found


class Guarded(dict[str, t.Any]):
    """A host with a secret that must not be asked for."""

    def __getitem__(self, name: str) -> t.Any:
        assert name != "vault_password"
        return super().__getitem__(name)


def test_hosts_of_the_groups() -> None:
    hostvars = {"l1": Guarded(HOST, vault_password=1), "login": Guarded(vault_password=1)}
    groups = {"all": ["l1", "login"], "l40s": ["l1"]}
    assert use(hostvars, groups, {}, "/inv") == []
    hostvars["l1"]["node_class_gpus"] = 4
    (text,) = use(hostvars, groups, {}, "/inv")
    assert text.startswith("l1: variables: node_class_gpus: got a variable that no class has")
    assert text.endswith("edit /inv/group_vars/l40s/ or /inv/host_vars/l1.yml")


@pytest.mark.parametrize("arguments", [(1, {}, {}), ({}, 1, {}), ({}, {}, 1)])
def test_bad_input(arguments: tuple[t.Any, ...]) -> None:
    with pytest.raises(AnsibleFilterError, match="inventory_problems: .*: got int, wanted a mapping"):
        use(*arguments)
