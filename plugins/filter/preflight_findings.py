# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: preflight_findings
short_description: What stands in the way of working with a host
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Judges the registered result of M(aidc.gpu_cluster.host_info) - operating system, Python, sudo, machine-id, clock,
    names both ways, free disk. A host that did not answer is an error of its own.
positional: host, settings
options:
  _input:
    description: The registered result, whatever came of it.
    type: dict
    required: true
  host:
    description: Name of the host in the inventory.
    type: str
    required: true
  settings:
    description: Variables of the role P(aidc.gpu_cluster.preflight#role) without their prefix.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Findings of the host
  ansible.builtin.set_fact:
    findings: "{{ info | aidc.gpu_cluster.preflight_findings(inventory_hostname, settings) }}"
"""

RETURN = r"""
_value:
  description: C(errors) and C(warnings), lists of texts with object, got, wanted and hint.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._preflight import check
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._preflight import settings as variables


def preflight_findings(result: t.Any, host: t.Any, settings: t.Any) -> dict[str, list[str]]:
    try:
        found = check.check(str(host), result, variables.settings(settings))
    except variables.SettingsError as error:
        raise AnsibleFilterError(f"preflight_findings: {error}") from error
    return {"errors": [one.text() for one in found.errors], "warnings": [one.text() for one in found.warnings]}


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"preflight_findings": preflight_findings}
