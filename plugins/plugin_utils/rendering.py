# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""All artefacts of a fleet as texts, and the folder that has them."""
from __future__ import annotations

import dataclasses
import hashlib
import typing as t
from pathlib import Path

import yaml
from ansible.errors import AnsibleError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access.io import Store
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail import addresses
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._site import render
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._site.variables import off
from ansible_collections.aidc.gpu_cluster.plugins.modules import nccl_test

from . import rendering_slurm, slurm_inventory
from .role_tasks import ROOT, HostView, Role

SOURCES, GATE = "package_sources", "nccl_gate"
NAMES = (SOURCES, *render.ROLES, GATE)
MANIFEST = "manifest.sha256"
_PLAN = (addresses.VARIABLE, addresses.INDEX, addresses.SUBNETS, addresses.LEAF_END)
# Like files of the fleet record: they may name proxies and internal addresses.
FILE_MODE, DIRECTORY_MODE = 0o600, 0o700
Files = dict[str, str]


def as_yaml(value: t.Any) -> str:
    # Not libyaml's faster dumper, which a controller may lack and which may break lines elsewhere.
    text = yaml.dump(render.plain(value), Dumper=yaml.SafeDumper, default_flow_style=None, sort_keys=True, width=110)
    return f"---\n{text}"


def below(folder: str, path: str) -> str:
    return f"{folder}/files/{path.lstrip('/')}"


class Fleet:
    """``hostvars`` is the engine's; the hosts are in the order of the inventory."""

    def __init__(self, hostvars: t.Any, hosts: t.Sequence[str], owner: str, loader: t.Any,
                 groups: t.Mapping[str, t.Sequence[str]] | None = None) -> None:
        self.owner, self.hostvars, self.groups = owner, hostvars, groups or {}
        roles = [Role(name, loader) for name in (*NAMES, rendering_slurm.ROLE) if (ROOT / "roles" / name).is_dir()]
        self.roles = {role.name: role for role in roles}
        raw = {host: hostvars.raw_get(host) for host in hosts}
        known = {"hostvars": hostvars, "ansible_check_mode": False,
                 "ansible_facts": {"distribution_release": "<release>", "os_family": "Debian"}}
        self.views = {host: HostView(roles, raw[host], known, loader) for host in hosts}
        self.problems = self._plan()

    def _plan(self) -> list[str]:
        values = {host: {name: view.value(name) for name in _PLAN if name in view.values}
                  for host, view in self.views.items() if not off(view.value("rail_network_mode"))}
        options, problems = addresses.plan({host: found for host, found in values.items()
                                            if found.get(addresses.VARIABLE)})
        fleet = {"hosts": options, "problems": []}
        self.planned = set(options)
        for view in self.views.values():
            view.values["__rail_network_fleet"] = fleet
        return [problem.text() for problem in problems]

    def files(self) -> Files:
        found: Files = {}
        for host in self.views:
            found.update(self._host(host))
        for pool in dict.fromkeys(str(view.value("nccl_gate_pool")) for view in self.views.values()):
            if pool:
                found.update(self._pool(pool))
        found.update(self._cluster())
        return found

    def _cluster(self) -> Files:
        """Slurm's files, where the inventory has the groups."""
        view = next(iter(self.views.values()), None)
        if view is None or not self.groups.get(slurm_inventory.COMPUTE):
            return {}
        try:
            rendered = rendering_slurm.render(self.hostvars, self.groups, view, self.roles.get(rendering_slurm.ROLE))
        except (render.RenderError, AnsibleError) as error:
            self.problems.append(f"slurm: {error}")
            return {}
        self.problems += [f"slurm: {finding.text()}" for finding in rendered.errors if not finding.is_unknown]
        files = {} if rendered.errors else {below("cluster", f"etc/slurm/{name}"): text
                                            for name, text in rendered.files.items()}
        return {"cluster/findings.yml": as_yaml([finding.as_dict() for finding in rendered.findings]), **files}

    def _host(self, host: str) -> Files:
        view, folder, settings = self.views[host], f"hosts/{host}", {}
        found: Files = {}
        for name in render.ROLES:
            for task in self.roles[name].tasks(render.PHASES.get(name, "configure"), f"aidc.gpu_cluster.{name}"):
                try:
                    if not view.runs(task):
                        continue
                    if name == "rail_network" and host not in self.planned:
                        raise render.RenderError(f"{addresses.VARIABLE}: got none, wanted one entry per rail; or "
                                                 "rail_network_mode: off")
                    rendered = render.role(name, view.args(task), self.owner)
                except (render.RenderError, AnsibleError) as error:
                    self.problems.append(f"{host}: {name}: {error}")
                    continue
                settings[name] = rendered.settings
                found.update({below(folder, path): text for path, text in rendered.files})
        found.update({below(folder, path): text for path, text in self._templates(view)})
        found[f"{folder}/settings.yml"] = as_yaml(settings)
        return found

    def _templates(self, view: HostView) -> t.Iterator[tuple[str, str]]:
        role = self.roles[SOURCES]
        for task in role.tasks("configure", "ansible.builtin.template"):
            if view.runs(task):
                args = view.args(task)
                yield str(args["dest"]), view.text(role.template(str(args["src"])))

    # -- gate -----------------------------------------------------------------------------------------

    def _member(self, host: str) -> dict[str, t.Any]:
        """What the role keeps of a host, with placeholders for what mlx5_info reads."""
        view = self.views[host]
        rails = [{"rail": number, "pci": pci, "hca": f"<rdma:{pci}>:1"}
                 for number, pci in enumerate(view.value("__nccl_gate_pcis"))]
        view.values["__nccl_gate_rails"] = {"rails": rails, "problems": []}
        view.values["__nccl_gate_info"] = {}
        (task,) = self.roles[GATE].tasks("preflight", "ansible.builtin.set_fact")
        view.values.update(view.args(task))
        return t.cast("dict[str, t.Any]", view.values["__nccl_gate_member"])

    def _pool(self, pool: str) -> Files:
        folder = f"pools/{pool}"
        head = next(host for host, view in self.views.items() if view.value("nccl_gate_pool") == pool)
        names = [str(name) for name in self.views[head].value("__nccl_gate_members")]
        strangers = [name for name in names if name not in self.views]
        if strangers or not names:
            got = ", ".join(names) or "none"
            self.problems.append(f"pool {pool}: got the hosts {got}, wanted hosts of the node classes")
            return {}
        view = self.views[names[0]]
        (task,) = self.roles[GATE].tasks("test", "aidc.gpu_cluster.nccl_test")
        if not view.value("__nccl_gate_tested"):
            return {f"{folder}/run.yml": as_yaml({"hosts": names, "not_tested": view.value("__nccl_gate_not_tested")
                                                  or "a pool of one host"})}
        view.values.update({
            "__nccl_gate_all_members": {name: self._member(name) for name in names},
            "__nccl_gate_all_access": {name: {"host_keys": self.views[name].value("nccl_gate_host_keys")
                                              or [f"<host-key:{name}>"]} for name in names},
            "__nccl_gate_made": {"run_id": f"{pool}-rendered"},
        })
        try:
            params = render.arguments(nccl_test.ARGUMENT_SPEC, {**view.args(task), "min_busbw_gbps": 0})
            job = nccl_test.job_of(params, Store(Path("~")))
            user = str(view.value("ansible_user")) if "ansible_user" in view.values else "<user>"
            job = dataclasses.replace(job, user=user)
            limit = {"min_busbw_gbps": view.value("nccl_gate_min_busbw_gbps"), "pass_fraction": params["pass_fraction"]}
            rendered = render.pool(job, limit)
        except render.RenderError as error:
            self.problems.append(f"pool {pool}: {error}")
            return {}
        return {f"{folder}/run.yml": as_yaml(rendered.settings),
                **{f"{folder}/{Path(path).name}": text for path, text in rendered.files}}


def manifest(files: Files) -> str:
    """For `sha256sum -c`."""
    return "".join(f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n" for name, text in sorted(files.items()))


def _known(folder: Path) -> set[str]:
    """What a render before has left here."""
    try:
        lines = (folder / MANIFEST).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return set()
    names = {line.partition("  ")[2] for line in lines}
    return {name for name in names if name and not name.startswith("/") and ".." not in Path(name).parts}


def compare(folder: Path, files: Files) -> tuple[list[str], list[str]]:
    """(files to write, files to remove)."""
    wanted = {**files, MANIFEST: manifest(files)}
    different = [name for name, text in sorted(wanted.items())
                 if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text]
    return different, sorted(_known(folder) - set(files))


def store(folder: Path, files: Files, different: t.Iterable[str], gone: t.Iterable[str]) -> None:
    """Only files of an earlier render are removed."""
    for name in gone:
        path = folder / name
        path.unlink(missing_ok=True)
        for parent in path.parents:
            if parent == folder or not parent.is_dir() or any(parent.iterdir()):
                break
            parent.rmdir()
    folder.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    # The manifest last: until it is there, the old one names what may have to be removed.
    for name in sorted(different, key=lambda name: name == MANIFEST):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[name] if name in files else manifest(files), encoding="utf-8")
        path.chmod(FILE_MODE)
