# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What a module would have to reach on a host, and the files that it would write, from its arguments alone. Pure.

Each function is given the module's arguments and calls the module's own code; nothing is computed here. What only the
host knows stands as a placeholder: <netdev:PCI>, <rdma:PCI>, <host-key:HOST>.
"""
from __future__ import annotations

import dataclasses
import json
import typing as t
from dataclasses import dataclass

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .._bootunit import argspec as boot_argspec
from .._gid import argspec as gid_argspec
from .._host.errors import AidcError, Problem
from .._mlx5 import argspec as mlx5_argspec
from .._nccl import launch
from .._networkd.model import Networkd
from .._nvconfig import argspec as nvconfig_argspec
from .._rail import argspec as rail_argspec
from .._rail import check as rail_check
from .._rail import plan as rail_plan
from .._rail.model import PENDING_FILE, NetworkManager, Node, Port, Request
from .._roce import argspec as roce_argspec
from .._roce import intent

Params = t.Mapping[str, t.Any]
# Open MPI's options differ; which one a node has, it says itself.
OPEN_MPI = (4, 5)


class RenderError(Exception):
    """Arguments that the module would refuse; the message says which and why."""


@dataclass(frozen=True)
class Rendered:
    """``settings`` for the reader, ``files`` as (path on the host, text)."""

    settings: t.Any
    files: tuple[tuple[str, str], ...] = ()


def plain(value: t.Any) -> t.Any:
    """Without types of ours or the engine's, so that it can be written down and compared."""
    def other(one: t.Any) -> t.Any:
        if dataclasses.is_dataclass(one) and not isinstance(one, type):
            return dataclasses.asdict(one)
        return sorted(one) if isinstance(one, (set, frozenset)) else str(one)

    return json.loads(json.dumps(value, default=other))


def _texts(problems: t.Sequence[Problem]) -> None:
    if problems:
        raise RenderError("; ".join(problem.text() for problem in problems))


def arguments(spec: t.Mapping[str, t.Any], given: Params) -> dict[str, t.Any]:
    """As the module sees them: typed, with its defaults."""
    result = ArgumentSpecValidator(spec).validate(plain(given))
    if result.error_messages:
        raise RenderError("; ".join(result.error_messages))
    values: dict[str, t.Any] = result.validated_parameters
    return values


def _free_node(request: Request) -> Node:
    """A host that nobody has configured, with every manager at work."""
    ports = {want.pci: Port(want.pci, netdev=f"<netdev:{want.pci}>") for want in request.rails}
    return Node(ports=ports, networkd=Networkd("active"), manager=NetworkManager(active=True), has_netplan=True)


def rail_network(given: Params, owner: str) -> Rendered:
    params = arguments(rail_argspec.rail_network(), given)
    request = rail_argspec.request({**params, "owner": owner if params["owner"] == "auto" else params["owner"]})
    _texts(rail_check.values(request))
    steps = rail_plan.plan(request, _free_node(request))
    files = [(step.command[1], step.text) for step in steps if step.command[0] == "write"]
    rails = [{**plain(want), "rules": want.rules, "routes": want.routes} for want in request.rails]
    return Rendered({"owner": request.owner, "rails": rails, "sysctls": dict(request.sysctls)},
                    tuple(file for file in files if file[0] != PENDING_FILE))


def mlx5_port(given: Params, _owner: str) -> Rendered:
    request = mlx5_argspec.request(arguments(mlx5_argspec.port(), given))
    return Rendered({"ports": request.ports, "persistent": request.persistent})


def mlx5_nvconfig(given: Params, _owner: str) -> Rendered:
    request = nvconfig_argspec.request(arguments(nvconfig_argspec.spec(), given))
    _texts([problem for want in request.devices for problem in want.problems])
    return Rendered({
        "bmc_powered": request.bmc_powered,
        "next_boot": {want.pci: {name: value.argument() for name, value in want.parameters.items()}
                      for want in request.devices}})


def roce_qos(given: Params, _owner: str) -> Rendered:
    request, problems = intent.request(arguments(roce_argspec.spec(), given))
    _texts(problems)
    return Rendered({"ports": request.wants, "take_over": request.take_over})


def roce_gid(given: Params, _owner: str) -> Rendered:
    return Rendered(gid_argspec.request(arguments(gid_argspec.gid(), given)))


def fabric_boot(given: Params, _owner: str) -> Rendered:
    """Without the tool itself, which is this collection's code."""
    request = boot_argspec.request(arguments(boot_argspec.spec(), given))
    return Rendered({"python": request.python}, tuple(request.texts.items()))


# Role, which is the module's name, to what renders it; in the order of playbooks/fabric.yml.
ROLES: dict[str, t.Callable[[Params, str], Rendered]] = {
    "mlx5_nvconfig": mlx5_nvconfig, "rail_network": rail_network, "mlx5_port": mlx5_port, "roce_qos": roce_qos,
    "roce_gid": roce_gid, "fabric_boot": fabric_boot,
}
# The phase of the role in which its module is called.
PHASES = {"fabric_boot": "install"}


def role(name: str, given: Params, owner: str) -> Rendered:
    try:
        return ROLES[name](given, owner)
    except AidcError as error:
        raise RenderError("; ".join(problem.text() for problem in error.problems)) from error


def pool(job: launch.Job, limit: t.Mapping[str, t.Any]) -> Rendered:
    """One run of the gate: command lines, environment, and the files beside them."""
    _texts(launch.problems(job))
    return Rendered({
        "hosts": [host.name for host in job.hosts], "ranks": job.ranks, "limit": limit,
        "environment": launch.environment(job, {}),
        "command": {f"Open MPI {major}": launch.command(job, major) for major in OPEN_MPI},
    }, tuple((job.file(name), text) for name, text in launch.files(job).items()))
