# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: preflight_report
short_description: Findings of the role preflight over all hosts
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Joins what P(aidc.gpu_cluster.preflight_findings#filter) found on each host of the play, and looks for hosts with
    the same machine-id in the whole fleet, those that are only in the fleet record included.
  - Call it once for a play, as it reads every host's variables.
positional: hosts, records
options:
  _input:
    description: The variable C(hostvars), where the role has registered its results.
    type: dict
    required: true
  hosts:
    description: Hosts of the play.
    type: list
    elements: str
    required: true
  records:
    description: Records of M(aidc.gpu_cluster.host_info) by host; those of hosts outside of the play count.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Every host can be worked with
  ansible.builtin.assert:
    that: report.errors | length == 0
    fail_msg: "{{ report.errors | join('; ') }}"
  run_once: true
  vars:
    report: "{{ hostvars | aidc.gpu_cluster.preflight_report(ansible_play_hosts_all) }}"
"""

RETURN = r"""
_value:
  description: C(errors) and C(warnings), lists of texts that begin with the host; C(by_host), the errors of each host.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._preflight import check

FINDINGS = "__preflight_findings"
INFO = "__preflight_info"


def _machine_id(data: t.Any) -> str | None:
    value = data.get("machine_id") if isinstance(data, t.Mapping) else None
    return str(value) if value else None


def preflight_report(hostvars: t.Any, hosts: t.Any, records: t.Any = None) -> dict[str, t.Any]:
    if not isinstance(hostvars, t.Mapping):
        raise AnsibleFilterError(f"preflight_report: got {type(hostvars).__name__}, wanted hostvars")
    if not isinstance(hosts, (list, tuple)) or not all(isinstance(host, str) for host in hosts):
        raise AnsibleFilterError(f"preflight_report: hosts: got {hosts!r}, wanted names of hosts")
    stored = records if isinstance(records, t.Mapping) else {}
    ids = {str(host): _machine_id(record.get("data")) for host, record in stored.items()
           if isinstance(record, t.Mapping) and host in hostvars}
    ids.update({host: _machine_id(hostvars[host].get(INFO)) for host in hosts})
    same = check.twins(ids)
    errors: dict[str, list[str]] = {}
    warnings: list[str] = []
    for host in hosts:
        found = hostvars[host].get(FINDINGS) or {}
        errors[host] = [f"{host}: {text}" for text in found.get("errors", [])]
        errors[host] += [f"{host}: {same[host].text()}"] if host in same else []
        warnings += [f"{host}: {text}" for text in found.get("warnings", [])]
    return {"errors": sum(errors.values(), []), "warnings": warnings, "by_host": errors}


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"preflight_report": preflight_report}
