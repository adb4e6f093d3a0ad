# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.role_tasks import HostView, Role, Task

RAILS = [{"rail": 0, "pci": "0000:41:00.0"}]


def view(*names: str, **values: object) -> tuple[list[Role], HostView]:
    loader = DataLoader()
    roles = [Role(name, loader) for name in names]
    return roles, HostView(roles, values, {"ansible_check_mode": False}, loader)


def test_arguments_are_those_of_the_roles_own_task() -> None:
    (role,), host = view("mlx5_port", mlx5_port_rails=RAILS, mlx5_port_global_pause="disabled")
    (task,) = role.tasks("configure", "aidc.gpu_cluster.mlx5_port")
    assert host.runs(task)
    (port,) = host.args(task)["ports"]
    # From the inventory, from the role's defaults, and derived by the role's variables.
    assert (port["pci"], port["pause_rx"], port["mtu_bytes"]) == ("0000:41:00.0", False, 4200)
    assert role.tasks("configure", "aidc.gpu_cluster.mlx5_port")[0] is task


@pytest.mark.parametrize("mode", ["off", False])
def test_conditions_of_the_import_count(mode: object) -> None:
    (role,), host = view("mlx5_port", mlx5_port_rails=RAILS, mlx5_port_mode=mode)
    (task,) = role.tasks("configure", "aidc.gpu_cluster.mlx5_port")
    assert not host.runs(task)


def test_tasks_in_blocks_and_omitted_arguments() -> None:
    (role,), host = view("nccl_gate")
    assert len(role.tasks("test", "aidc.gpu_cluster.nccl_test")) == 1
    assert len(role.tasks("test", "aidc.gpu_cluster.run_access")) == 3, "one of them in always"
    (role,), host = view("mlx5_nvconfig", mlx5_nvconfig_rails=RAILS, mlx5_nvconfig_parameters={"A": 1})
    (task,) = role.tasks("configure", "aidc.gpu_cluster.mlx5_nvconfig")
    assert "bmc_powered" not in host.args(task)


def test_a_template_as_the_module_renders_it() -> None:
    _roles, host = view("mlx5_port", word="x")
    assert host.text("{% if true %}\n{{ word }}\n{% endif %}\nend\n") == "x\nend\n"
    assert host.value("mlx5_port_mtu_bytes") == 4200
    assert host.runs(Task({}, ()))
