#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entry file of the module path_probe."""
from __future__ import annotations

DOCUMENTATION = r"""
module: path_probe
short_description: Ask whether network paths carry a packet size
version_added: 0.1.0
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
description:
  - Sends packets that must not be fragmented from given interfaces to given addresses, all at once, and says for each
    path whether its size passed, and if not, the largest usual size that did.
  - Switches drop packets that are too large without a word. Such a path looks healthy to C(ping) and stops RDMA.
  - Uses C(ping) of iputils. It changes nothing, also in check mode it really asks.
options:
  targets:
    description: The paths.
    type: list
    elements: dict
    required: true
    suboptions:
      interface:
        description: Network interface to send from.
        type: str
        required: true
      address:
        description: IPv4 address of the other end.
        type: str
        required: true
      size_bytes:
        description: Packet size, which is the MTU that the path must have.
        type: int
        required: true
      source:
        description: Address of the interface, for the result.
        type: str
        default: ""
      peer:
        description: Name of the other host, for the result.
        type: str
        default: ""
      peer_interface:
        description: The other host's interface, for the result.
        type: str
        default: ""
      rail:
        description: Number of the rail, for the result.
        type: int
  timeout_seconds:
    description: How long to wait for an answer.
    type: int
    default: 1
  attempts:
    description: How many packets may get lost, one after the other, before a size counts as too large.
    type: int
    default: 2
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: There is no change to show.
  idempotent:
    support: full
seealso:
  - module: aidc.gpu_cluster.nccl_test
"""

EXAMPLES = r"""
- name: Do packets of 4200 bytes reach the neighbour's first rail?
  aidc.gpu_cluster.path_probe:
    targets:
      - {interface: ens1f0np0, address: 198.51.100.2, size_bytes: 4200, peer: node2, rail: 0}
"""

RETURN = r"""
changed:
  description: Always V(false).
  returned: always
  type: bool
  sample: false
paths:
  description: The targets with C(passed), C(largest_bytes) (0 if nothing passed) and C(reason).
  returned: success
  type: list
  elements: dict
  sample:
    - {interface: ens1f0np0, address: 198.51.100.2, size_bytes: 4200, peer: node2, passed: false, largest_bytes: 1500}
too_small:
  description: Number of paths that did not carry their size.
  returned: success
  type: int
  sample: 1
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._host.errors import AidcError
from ..module_utils._host.machine import Machine
from ..module_utils._path.io import probe
from ..module_utils._path.model import Target

TARGET_SPEC = {
    "interface": {"type": "str", "required": True},
    "address": {"type": "str", "required": True},
    "size_bytes": {"type": "int", "required": True},
    "source": {"type": "str", "default": ""},
    "peer": {"type": "str", "default": ""},
    "peer_interface": {"type": "str", "default": ""},
    "rail": {"type": "int"},
}
ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "targets": {"type": "list", "elements": "dict", "options": TARGET_SPEC, "required": True},
    "timeout_seconds": {"type": "int", "default": 1},
    "attempts": {"type": "int", "default": 2},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    targets = [Target(**target) for target in module.params["targets"]]
    try:
        answers = probe(targets, Machine(), module.params["timeout_seconds"], module.params["attempts"])
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(changed=False, paths=[answer.as_dict() for answer in answers],
                     too_small=sum(not answer.passed for answer in answers))


if __name__ == "__main__":
    main()
