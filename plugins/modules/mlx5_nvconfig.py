#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: mlx5_nvconfig
short_description: Sets non-volatile firmware parameters of mlx5 NICs, and says what is pending and how it gets loaded
version_added: 0.1.0
description:
  - Sets named firmware parameters of all listed NICs in one call with C(mlxconfig) or C(mstconfig). What is written is
    the value of the next boot; the running value changes only when the firmware is reset, or at a boot that does so.
  - Only the named parameters are asked for, with one query per device. A parameter that the firmware does not know
    makes a query fail as a whole, so each of those costs one more. A device with differences gets one C(set) with all
    of them, and is then read back. A value that does not take is an error after one attempt.
  - A reset, reboot or power cycle is never done. Whether one is needed is a result, with the order and the reason for
    this platform. While it is pending, C(changed) is false, as the value of the next boot is the wanted one.
  - Everything is checked before the first write, and an error then says that nothing was changed.
  - What was written in which boot is kept on the host in C(/var/lib/aidc/mlx5_nvconfig.json), so that a later run can
    tell that a reboot did not load it.
  - On a checkout or install of the collection an action plugin of the same name runs on the controller. In the folder
    C(aidc_state_dir), by default C(.state) beside the inventory, it
    stores the result there as C(mlx5_nvconfig/HOST.json), the fleet record; not the
    prediction of a run in check mode.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details:
      - Everything but the writes is done, so C(changed), C(diff) and RV(commands) equal those of the run.
      - Only the tool's answer to a write tells that a card wants a power cycle; a run in check mode cannot know it.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  devices:
    description: NICs to configure; each PCI address once, of a physical function.
    type: list
    elements: dict
    required: true
    suboptions:
      pci:
        description: PCI address of the function, with its domain. One function of a card is enough for both ports.
        type: str
        required: true
      parameters:
        description: Parameters of this device only. They win over O(parameters); null takes one of those away.
        type: dict
        default: {}
  parameters:
    description:
      - Parameters of all O(devices), name to value. A value is a name, a number or both, such as V(ETH), V(2) or
        V(ETH(2)); booleans may be YAML booleans.
      - Names that YAML takes for booleans must be quoted where the parameter is none, such as V("OFF").
      - Array elements are V(NAME[2]); V(NAME[0..3]) gives all four the one value, or one each of a list.
    type: dict
    default: {}
  unknown_parameters:
    description:
      - What to do with a parameter that the tool or the firmware does not know, such as C(LINK_TYPE_P1) on an
        Ethernet-only card. V(error) fails before any write, V(skip) names it in RV(devices) and RV(pending).
      - C(MAX_ACC_OUT_READ) and C(PCI_WR_ORDERING) are hidden while C(ADVANCED_PCI_SETTINGS) is off. Where the same call
        turns that on, they are V(waiting) and no error; the run after the reset sets them.
    type: str
    choices: [error, skip]
    default: error
  tool:
    description: The program; V(auto) takes C(mlxconfig) (MFT, DOCA-OFED) if it is there, else C(mstconfig) (mstflint).
    type: str
    choices: [auto, mlxconfig, mstconfig]
    default: auto
  bmc_powered:
    description:
      - Whether the board keeps the NIC's power through a reboot of the operating system, as DGX, HGX B200 and B300, and
        GB200 do. A reboot then loads nothing.
      - Without it the module does not know, and finds out when a reboot has not loaded a value that it wrote.
    type: bool
  tool_timeout_seconds:
    description: Longest time in seconds that one tool may take; less than 1 counts as 1.
    type: int
    default: 60
seealso:
  - module: aidc.gpu_cluster.mlx5_info
  - module: aidc.gpu_cluster.mlx5_port
  - name: mstflint
    description: Source of mstconfig and mstfwreset with the list of parameters.
    link: https://github.com/Mellanox/mstflint
notes:
  - Needs root.
  - Two writers of the same parameters undo each other. C(SRIOV_EN) and C(NUM_OF_VFS) are also written by the SR-IOV
    network operator and the NIC configuration operator.
  - A lock on the host, C(/run/lock/aidc.lock), keeps two runs apart; the error names the holder.
"""

EXAMPLES = r"""
- name: Ethernet on VPI cards, and relaxed ordering of writes
  aidc.gpu_cluster.mlx5_nvconfig:
    devices:
      - pci: "0000:03:00.0"
      - pci: "0002:03:00.0"
    parameters:
      LINK_TYPE_P1: ETH
      ADVANCED_PCI_SETTINGS: true
      PCI_WR_ORDERING: force_relax
    bmc_powered: true
  become: true

- name: One card is Ethernet-only and has no link type
  aidc.gpu_cluster.mlx5_nvconfig:
    devices:
      - pci: "0000:41:00.0"
      - pci: "0000:c1:00.0"
        parameters:
          LINK_TYPE_P1:
    parameters:
      LINK_TYPE_P1: ETH
      SRIOV_EN: false
  become: true

- name: Cards of several generations, each with what it knows
  aidc.gpu_cluster.mlx5_nvconfig:
    devices:
      - pci: "0000:41:00.0"
    parameters:
      CNP_DSCP_P1: 48
      ROCE_ADAPTIVE_ROUTING_EN: true
    unknown_parameters: skip
  become: true
"""

RETURN = r"""
before:
  description: Next-boot values as they were. One that is the wanted one is written as in the options.
  returned: success
  type: list
  elements: dict
  contains: &state
    pci:
      description: PCI address.
      type: str
      sample: "0000:03:00.0"
    parameters:
      description: Name to next-boot value; null where the firmware does not know the parameter.
      type: dict
      sample: {LINK_TYPE_P1: IB(1)}
after:
  description: Next-boot values as they are now; in check mode, as they would be.
  returned: success
  type: list
  elements: dict
  contains: *state
commands:
  description:
    - What was done, in check mode what would be done, in order; one list per step.
    - A file operation is V(write) with the path.
  returned: always
  type: list
  elements: list
  sample:
    - [mstconfig, "-y", "-d", "0000:03:00.0", set, LINK_TYPE_P1=ETH]
    - [write, /var/lib/aidc/mlx5_nvconfig.json]
steps:
  description: The same steps with what they disturb.
  returned: success
  type: list
  elements: dict
  contains:
    command:
      description: As in RV(commands).
      type: list
      elements: str
      sample: [mstconfig, "-y", "-d", "0000:03:00.0", set, LINK_TYPE_P1=ETH]
    disruptive:
      description: Always V(none); the reset that loads the values is not done here.
      type: str
      sample: none
    why:
      description: The reason for the step.
      type: str
      sample: "next boot: LINK_TYPE_P1 is IB(1)"
    pci:
      description: PCI address of the device, null for a step that serves several.
      type: str
      sample: "0000:03:00.0"
devices:
  description: Each device in detail; in check mode the values are those before the steps.
  returned: success
  type: list
  elements: dict
  contains:
    pci:
      description: PCI address.
      type: str
      sample: "0000:03:00.0"
    device_type:
      description: Device type as the tool names it.
      type: str
      sample: ConnectX7
    card:
      description: Name and description of the card.
      type: str
      sample: MCX75310AAS-NEA_Ax, NVIDIA ConnectX-7 HHHL Adapter card
    parameters:
      description: The wanted parameters.
      type: list
      elements: dict
      contains:
        name:
          description: Name.
          type: str
          sample: LINK_TYPE_P1
        wanted:
          description: The value asked for.
          type: str
          sample: ETH
        default:
          description: Default value, null where the firmware shows none.
          type: str
          sample: IB(1)
        current:
          description: Value that the firmware runs with, null where it shows none.
          type: str
          sample: IB(1)
        next:
          description: Value of the next boot.
          type: str
          sample: ETH(2)
        state:
          description:
            - V(set) is loaded, V(pending) is written and not loaded.
            - V(waiting) is hidden until a pending value of another parameter is loaded, V(unknown) was skipped.
          type: str
          sample: pending
    pending:
      description: Names of the parameters that are written and not loaded.
      type: list
      elements: str
      sample: [LINK_TYPE_P1]
    reset_required:
      description: Whether anything of this device is pending.
      type: bool
      sample: true
    reboot_required:
      description: Whether a reboot of the operating system is the way to load it.
      type: bool
      sample: false
    power_cycle_required:
      description: Whether only a power cycle loads it.
      type: bool
      sample: false
    order:
      description: What to do, of V(firmware_reset), V(reboot) and V(power_cycle). Empty if nothing is pending.
      type: list
      elements: str
      sample: [firmware_reset]
    reason:
      description: What to do in words, and why on this platform.
      type: str
      sample: "Reset the firmware before any reboot: the board keeps the NIC's power, so a reboot alone loads nothing"
    reset_command:
      description: Command of the firmware reset; empty where that is not the way. It ends all traffic of the card.
      type: list
      elements: str
      sample: [mstfwreset, "-d", "0000:03:00.0", "-l", "3", "-y", reset]
pending:
  description: Lines for the operator about what is pending, waiting or unknown, and what to do.
  returned: success
  type: list
  elements: str
  sample: ["0000:03:00.0: pending: LINK_TYPE_P1 runs with IB(1), wanted ETH. Reboot the node"]
reset_required:
  description: Whether anything is pending on any device.
  returned: success
  type: bool
  sample: true
reboot_required:
  description: Whether a device needs a reboot of the operating system.
  returned: success
  type: bool
  sample: false
power_cycle_required:
  description: Whether a device needs a power cycle.
  returned: success
  type: bool
  sample: false
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: 0000:41:00.0 LINK_TYPE_P1
    got:
      description: What was found.
      type: str
      sample: a parameter that mstconfig or the firmware does not know
    wanted:
      description: What was wanted.
      type: str
      sample: a known one
    hint:
      description: What to do.
      type: str
      sample: Ethernet-only cards have no link type
record_file:
  description: Where the controller stored the result.
  returned: when there is a state directory
  type: str
  sample: /srv/inventory/.state/mlx5_nvconfig/gb200-1.json
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvconfig import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvconfig.configure import configure


def main() -> None:
    module = AnsibleModule(argument_spec=argspec.spec(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=argspec.timeout(module.params))
    try:
        result = configure(machine, argspec.request(module.params), module.check_mode)
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
