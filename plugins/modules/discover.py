#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This is the documentation of the action plugin of the same name, which does the work on the controller.
from __future__ import annotations

DOCUMENTATION = r"""
module: discover
short_description: Proposes an inventory from what hosts are
version_added: 0.1.0
description:
  - Takes what tasks registered of M(aidc.gpu_cluster.host_info) and M(aidc.gpu_cluster.mlx5_info), finds the node class
    of each host, its rails, leaf and NVLink domain, and writes an inventory skeleton on the controller.
  - A host is of the class whose GPU ids it has. One without GPUs is of a class without GPUs if architecture and NICs
    agree. A host that fits no class, or several, comes into the group V(unknown); nothing is guessed.
  - What differs from the class is a finding, and so is what is odd in itself, such as two default routes.
  - Rails are the ports with the class's NIC ids in the order of their PCI addresses; the fastest that are alike, where
    there are more than the class has rails. A BlueField, a virtual function, and a port that carries something else are
    none.
  - No host is contacted and nothing on a host is changed.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details: In check mode no file is written.
  diff_mode:
    support: none
    details: The files are named, their texts are not shown.
  idempotent:
    support: full
options:
  hosts:
    description: Names of the hosts in the order of the tables.
    type: list
    elements: str
    required: true
  host_info:
    description: Variable with the registered result of M(aidc.gpu_cluster.host_info).
    type: str
    default: aidc_discover_host
  mlx5_info:
    description: Variable with the registered result of M(aidc.gpu_cluster.mlx5_info).
    type: str
    default: aidc_discover_mlx5
  classes_dir:
    description: Folder with one file of C(node_class_) variables for each node class.
    type: path
    required: true
  directory:
    description:
      - Folder for the inventory, made if it is not there.
      - If one of the files is there with another text nothing is written, see RV(refused).
    type: path
    required: true
  force:
    description: Write over files that are there.
    type: bool
    default: false
seealso:
  - module: aidc.gpu_cluster.host_info
  - module: aidc.gpu_cluster.mlx5_info
"""

EXAMPLES = r"""
- name: Propose an inventory
  aidc.gpu_cluster.discover:
    hosts: "{{ ansible_play_hosts_all }}"
    classes_dir: "{{ playbook_dir }}/../inventories/classes"
    directory: ./discovered
  run_once: true
"""

RETURN = r"""
hosts:
  description:
    - For each host C(host), C(group) (its class or V(unknown)), C(why) (what decided), C(rails) (PCI addresses in rail
      order), C(subnets), C(leaf), C(nvlink_domain), C(node_index), C(needs_root).
  returned: success
  type: list
  elements: dict
  sample: [{host: l40s-1, group: l40s, why: "GPU 10de:26b9", rails: ["0000:41:00.0", "0000:c1:00.0"], leaf: leaf1}]
table:
  description: Lines of a table with one line for each host.
  returned: success
  type: list
  elements: str
  sample: ["HOST  CLASS  GPUS  RAILS  GB/S  LINK-LAYER  NVLINK  OWNER  OS  STACK"]
rails_table:
  description: Lines of a table with one line for each rail.
  returned: success
  type: list
  elements: str
  sample: ["HOST  RAIL  PCI  NETDEV  GB/S  LINK-LAYER  SUBNET  LLDP-NEIGHBOUR  OWNER"]
differences:
  description: What differs from the class or is odd - C(host), C(object), C(got), C(wanted), C(hint).
  returned: success
  type: list
  elements: dict
  sample: [{host: l40s-1, object: GPUs, got: "3: 3 x L40S (10de:26b9)", wanted: "4", hint: look at dmesg and the BMC}]
differences_table:
  description: The same as lines of a table.
  returned: success
  type: list
  elements: str
  sample: ["HOST  OBJECT  GOT  WANTED  HINT"]
directory:
  description: Folder of the inventory.
  returned: success
  type: str
  sample: ./discovered
files:
  description: Files that were written, or would be.
  returned: success
  type: list
  elements: str
  sample: [./discovered/hosts.yml]
refused:
  description: Files that are there with another text. If there is one, and O(force) is not set, nothing was written.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._discover.argspec import DISCOVER


def main() -> None:
    """Reached only where the action plugin was not found."""
    module = AnsibleModule(argument_spec=DISCOVER, supports_check_mode=True)
    module.fail_json(msg="this runs on the controller only: call it by its full name, aidc.gpu_cluster.discover")


if __name__ == "__main__":
    main()
