# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user needs to reach the hosts: the host part of an inventory, ssh_config, known_hosts."""
from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import yaml

from lab.fleet import Fleet, Host
from lab.guest import Keys
from lab.hardware.spec import node_spec
from lab.image import USER
from lab.instance import NETNS_DIR, Instance
from lab.repository.build import public_key

ROOT = Path(__file__).resolve().parent.parent
TRACKED = ROOT / "inventories" / "lab"

SSH_CONFIG = """\
# Made by `lab up`: ssh -F {file} HOST
{hosts}Host *
  User {user}
  IdentityFile {key}
  IdentitiesOnly yes
  UserKnownHostsFile {known_hosts}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  ProxyUseFdpass yes
  ProxyCommand {python} -S -E {connect} {namespace} %h %p
"""
# Before `Host *`, as ssh takes the first value it finds; a jump hands over bytes and no descriptor.
SSH_HOST = "Host {name} {address}\n  HostName {address}\n"
SSH_JUMP = "  ProxyJump {jump}\n  ProxyUseFdpass no\n"


def write_access(instance: Instance, fleet: Fleet, keys: Keys, host_keys: dict[str, str]) -> Path:
    """Write known_hosts and ssh_config into the instance's folder; returns the latter's path."""
    known = "".join(f"{fleet.management_address(host)} {host_keys[host.name]}\n" for host in fleet.hosts)
    known_hosts, config = instance.dir / "known_hosts", instance.dir / "ssh_config"
    known_hosts.write_text(known, encoding="utf-8")
    hosts = ""
    for host in fleet.hosts:
        hosts += SSH_HOST.format(name=host.name, address=fleet.management_address(host))
        if fleet.behind_jump(host):
            hosts += SSH_JUMP.format(jump=fleet.jump)
    config.write_text(SSH_CONFIG.format(
        file=config, hosts=hosts, user=USER, key=keys.private, known_hosts=known_hosts,
        python=shlex.quote(sys.executable), connect=shlex.quote(str(Path(__file__).with_name("connect.py"))),
        namespace=NETNS_DIR / instance.fabric,
    ), encoding="utf-8")
    return config


def package_sources(instance: Instance, fleet: Fleet) -> dict[str, Any]:
    """The lab's mirror, as a site without internet access names its own (role package_sources)."""
    return {"apt": {"replace_system": True, "repositories": [{
        "name": "lab",
        "uris": [f"http://{fleet.fabric_address()}/debian"],
        "components": ["main"],
        "key_file": str(public_key(instance.state / "cache")),
    }]}}


def addressing(fleet: Fleet, host: Host) -> dict[str, Any]:
    """What the role rail_network plans the addresses of the host's rails from: those of its leaf, and its number."""
    if host.leaf is None:
        return {}
    count = len(node_spec(host.node_class, host.name, host.number).rails)
    return {"rail_network_node_index": host.number,
            "rail_network_subnets": [str(fleet.rail_subnet(host, rail)) for rail in range(count)]}


def hosts_file(instance: Instance, fleet: Fleet, config: Path) -> dict[str, Any]:
    """The inventory's host part: groups by class, connection settings, what the fleet file adds."""
    children: dict[str, Any] = {}
    for host in fleet.hosts:
        group = children.setdefault(host.node_class, {"hosts": {}})
        entry = {"ansible_host": fleet.management_address(host), **addressing(fleet, host), **host.variables}
        if host.sudo_password:
            entry["ansible_become_password"] = "{{ lookup('ansible.builtin.file', '%s') }}" % (
                instance.dir / "become_password")
        group["hosts"][host.name] = entry
    for name, members in fleet.groups.items():
        kinds = {"children": [one for one in members if one in children],
                 "hosts": [one for one in members if one not in children]}
        children[name] = {kind: dict.fromkeys(found) for kind, found in kinds.items() if found}
    return {"all": {
        "vars": {
            "ansible_user": USER,
            "ansible_ssh_common_args": f"-F {config}",
            "ansible_control_path_dir": str(instance.dir / "cp"),
            "aidc_sources": package_sources(instance, fleet),
        },
        "children": children,
    }}


def write(instance: Instance, fleet: Fleet, config: Path, directory: Path) -> Path:
    """Write ``directory/hosts.yml``; a directory other than the tracked one gets links to its group_vars."""
    directory.mkdir(parents=True, exist_ok=True)
    shared = directory / "group_vars"
    if directory.resolve() != TRACKED.resolve() and not shared.exists():
        shared.symlink_to(TRACKED / "group_vars")
    target = directory / "hosts.yml"
    text = yaml.safe_dump(hosts_file(instance, fleet, config), sort_keys=False, width=200)
    temporary = directory / f".hosts.yml.{os.getpid()}"
    temporary.write_text(f"---\n# Made by `lab up` ({instance.name}); `lab down` removes it.\n{text}", encoding="utf-8")
    temporary.replace(target)
    return target
