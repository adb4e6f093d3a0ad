# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: path_findings
short_description: Paths that do not carry their packet size, in words
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Says of each path of M(aidc.gpu_cluster.path_probe) that did not pass which rail, neighbour and size it is.
positional: host
options:
  _input:
    description: The return value C(paths) of M(aidc.gpu_cluster.path_probe).
    type: list
    elements: dict
    required: true
  host:
    description: Name of the host that asked.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: What does not pass
  ansible.builtin.debug:
    msg: "{{ probed.paths | aidc.gpu_cluster.path_findings(inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description: One text for each path.
  type: list
  elements: str
  sample:
    - >-
      gb1 rail 0 (ens1f0np0, 198.51.100.1) to gb2 (198.51.100.2): got 1500 bytes at most, wanted 4200 bytes unfragmented
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import neighbours


def path_findings(paths: t.Any, host: str) -> list[str]:
    try:
        return neighbours.findings(host, paths)
    except (KeyError, TypeError, AttributeError) as error:
        raise AnsibleFilterError(f"path_findings: {type(error).__name__}: {error}; wanted what path_probe returns") \
            from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"path_findings": path_findings}
