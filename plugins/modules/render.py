#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This is the documentation of the action plugin of the same name, which does the work on the controller.
from __future__ import annotations

DOCUMENTATION = r"""
module: render
short_description: Writes on the controller what the roles would put on the hosts
version_added: 0.1.0
description:
  - Renders for each host the firmware parameters, rail addresses, files of the network manager, port settings, QoS and
    GID that the roles want, and the files of package repositories; for each pool the command, the environment and the
    files of the gate's run. No host is contacted.
  - With hosts in the group C(slurm_compute) also Slurm's files, as M(aidc.gpu_cluster.slurm_render) makes them without
    the fleet record, below C(cluster), and its findings. What only the hosts can say (the version of Slurm, processors,
    memory), must stand in the inventory; else there are only the findings.
  - The roles' own tasks say what their modules would be given, and the modules' own code makes files and settings of
    it.
  - What only a host knows stands as a placeholder - C(<netdev:PCI>), C(<rdma:PCI>), C(<host-key:HOST>), C(<release>).
  - Files that an earlier call wrote and that are no longer wanted are removed; no others are.
  - With the same inventory the files are the same, byte for byte.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: The files are for comparison with C(diff -r).
  idempotent:
    support: full
options:
  hosts:
    description: Hosts to render, usually those of the node classes in the order of the inventory.
    type: list
    elements: str
    required: true
  directory:
    description: Folder on the controller.
    type: path
    required: true
  owner:
    description:
      - Network manager whose files are rendered, as only the host knows which one owns its ports.
      - The variable C(rail_network_owner) of a host wins.
    type: str
    choices: [networkd, netplan, networkmanager]
    default: networkd
seealso:
  - module: aidc.gpu_cluster.rail_network
  - module: aidc.gpu_cluster.roce_qos
"""

EXAMPLES = r"""
- name: Render what the GPU nodes would get
  aidc.gpu_cluster.render:
    hosts: "{{ groups['gb200'] }}"
    directory: "{{ inventory_dir }}/.rendered"
    owner: netplan
  run_once: true
"""

RETURN = r"""
directory:
  description: The folder.
  returned: success
  type: str
  sample: /srv/inventory/.rendered
files:
  description: Number of rendered files, without the manifest.
  returned: success
  type: int
  sample: 650
written:
  description: Files that are new or differ, below RV(directory).
  returned: success
  type: list
  elements: str
  sample: [hosts/gb1-01/settings.yml, manifest.sha256]
removed:
  description: Files of an earlier call that are no longer wanted.
  returned: success
  type: list
  elements: str
  sample: []
manifest:
  description: File with the SHA-256 of each file, for C(sha256sum -c).
  returned: success
  type: str
  sample: /srv/inventory/.rendered/manifest.sha256
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._site.argspec import RENDER


def main() -> None:
    """Reached only where the action plugin was not found."""
    module = AnsibleModule(argument_spec=RENDER, supports_check_mode=True)
    module.fail_json(msg="this runs on the controller only: call it by its full name, aidc.gpu_cluster.render")


if __name__ == "__main__":
    main()
