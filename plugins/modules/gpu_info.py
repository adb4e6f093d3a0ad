#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_info
short_description: Reads all NVIDIA GPUs of a node, and their driver
version_added: 0.1.0
description:
  - Reads the GPUs as the PCI bus, the driver and C(nvidia-smi) have them; the driver's versions (loaded, on disk,
    user space, helpers), flavour and module parameters; NVLink and fabric, ECC, MIG, temperatures, clocks; who holds
    the device files; the Xids since boot; which NIC is near which GPU.
  - sysfs and procfs are read first. C(nvidia-smi topo) is only a check of what the PCI tree says.
  - On a node without an NVIDIA GPU the result is empty and no tool is called, unless O(class.gpu_count) is more than 0.
  - What is wrong is an entry in RV(findings). A tool that is missing, hangs or prints something else is an entry in
    RV(problems), and the values it would have given are null. The module does not fail for either.
  - C(nvidia-smi) is not called while the driver is not loaded, as it would load it.
  - On a checkout or install of the collection an action plugin of the same name runs on the controller. In the folder
    C(aidc_state_dir), by default C(.state) beside the inventory, it stores the result there as
    C(gpu_info/HOST.json), the fleet record, with the variable C(aidc_run_id) as run id. This is not a change.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details: The module changes nothing. The fleet record is stored in check mode too.
  diff_mode:
    support: none
    details: There is nothing to compare.
  idempotent:
    support: full
options:
  class:
    description:
      - What the class of the node says. What is left out is not judged.
    type: dict
    default: {}
    suboptions:
      gpu_count:
        description: GPUs of a node; 0 for a class without any.
        type: int
      gpu_pci_ids:
        description: Vendor and device id that they may have. Quote them.
        type: list
        elements: str
        default: []
      board:
        description:
          - What the NVLink fabric is judged by. V(nvl) is a tray of an NVL72, V(nvswitch) a board with NVSwitches of
            its own (HGX), V(pcie) a card without a fabric.
          - Left out, the PCI ids of GB200, GB300, B200, H100 SXM and L40S tell it; other GPUs are not judged by it.
        type: str
        choices: [nvl, nvswitch, pcie]
      flavour:
        description: Kernel module. Blackwell is judged as V(open) whatever stands here.
        type: str
        choices: [open, proprietary]
      driver_version:
        description: Version of the loaded driver.
        type: str
      module_parameters:
        description: Parameters that must be in force, with or without C(NVreg_).
        type: dict
        default: {}
      persistence:
        description: Whether persistence mode is on.
        type: bool
      mig:
        description: Whether MIG is on.
        type: bool
      memory_total_mib:
        description: Memory of each GPU as C(nvidia-smi) counts it, in MiB.
        type: int
  rails:
    description:
      - PCI addresses of the compute rails in rail order; they are the NICs that are compared with the GPUs.
      - If empty, all physical ConnectX functions with O(link_layer) are.
    type: list
    elements: str
    default: []
  link_layer:
    description: Link layer of the NICs that count, where O(rails) is empty.
    type: str
    choices: [Ethernet, InfiniBand]
    default: Ethernet
  tool_timeout_seconds:
    description:
      - Longest time in seconds that one tool may take; less than 1 counts as 1.
      - Without persistence mode C(nvidia-smi) starts the GPUs first, which takes seconds for each.
    type: int
    default: 30
seealso:
  - module: aidc.gpu_cluster.mlx5_info
  - module: aidc.gpu_cluster.host_info
  - plugin: aidc.gpu_cluster.fleet_record
    plugin_type: lookup
  - name: Xid errors
    description: NVIDIA's own description.
    link: https://docs.nvidia.com/deploy/xid-errors/
notes:
  - Root sees everything. Another user misses holders, and perhaps the kernel's log.
  - Xids are counted since boot. One stays after the GPU was reset, until the next boot.
  - Which tool reads packages is C(dpkg-query) where it is there, else C(rpm).
"""

EXAMPLES = r"""
- name: Read the GPUs
  aidc.gpu_cluster.gpu_info:
  become: true
  register: gpus

- name: A GB200 tray against its class
  aidc.gpu_cluster.gpu_info:
    class:
      gpu_count: 4
      gpu_pci_ids: ["10de:2941"]
      memory_total_mib: 189471
      module_parameters:
        CreateImexChannel0: 0
    rails: ["0000:03:00.0", "0002:03:00.0", "0010:03:00.0", "0012:03:00.0"]
  become: true
  register: gpus
  failed_when: gpus.findings | length > 0

- name: A node that has no GPU
  aidc.gpu_cluster.gpu_info:
    class:
      gpu_count: 0
"""

RETURN = r"""
gpus:
  description: GPUs on the PCI bus, in the order of their addresses.
  returned: always
  type: list
  elements: dict
  contains:
    pci:
      description: PCI address.
      type: str
      sample: "0008:01:00.0"
    pci_id:
      description: Vendor and device id.
      type: str
      sample: "10de:2941"
    uuid:
      description: UUID, or null.
      type: str
      sample: GPU-00000000-0000-0000-0000-000000000001
    name:
      description: Name, or null.
      type: str
      sample: NVIDIA GB200
    board:
      description: What the fabric is judged by, see O(class.board); null where nothing tells.
      type: str
      sample: nvl
    numa_node:
      description: NUMA node of its CPU, or null.
      type: int
      sample: 0
    driver:
      description: Kernel driver, or null.
      type: str
      sample: nvidia
    answers:
      description: Whether its configuration space can be read; null where that cannot be tried.
      type: bool
      sample: true
    pcie:
      description: The PCIe link; an idle GPU lowers its speed. Null where sysfs says Unknown.
      type: dict
      contains:
        current_speed_gts:
          description: Speed in GT/s per lane.
          type: float
          sample: 32.0
        current_width:
          description: Lanes.
          type: int
          sample: 16
        max_speed_gts:
          description: Largest speed of the device.
          type: float
          sample: 32.0
        max_width:
          description: Largest width of the device.
          type: int
          sample: 16
    in_driver:
      description: Whether the driver lists it; null where the driver is not loaded.
      type: bool
      sample: true
    in_nvidia_smi:
      description: Whether C(nvidia-smi) lists it; null where it said nothing.
      type: bool
      sample: true
    minor:
      description: N of its C(/dev/nvidiaN), or null.
      type: int
      sample: 0
    firmware_version:
      description: GSP firmware, or null.
      type: str
      sample: 580.126.09
    persistence:
      description: Persistence mode. This and what follows up to RV(gpus[].is_lost) is null without C(nvidia-smi).
      type: bool
      sample: true
    memory_total_mib:
      description: Memory in MiB.
      type: int
      sample: 189471
    bar1_total_mib:
      description: BAR1 in MiB.
      type: int
      sample: 131072
    mig:
      description: MIG mode now (C(current)) and after a reset (C(pending)); null on boards without MIG.
      type: dict
      sample: {current: Disabled, pending: Disabled}
    ecc:
      description: ECC mode, likewise.
      type: dict
      sample: {current: Enabled, pending: Enabled}
    ecc_errors:
      description: Sums of ECC errors; volatile since the driver was loaded.
      type: dict
      sample: {volatile_correctable: 0, volatile_uncorrectable: 0, aggregate_correctable: 0, aggregate_uncorrectable: 0}
    remap:
      description: Remapped rows, whether more are pending until a reset, and whether remapping failed.
      type: dict
      sample: {correctable: 0, uncorrectable: 0, pending: false, failure: false}
    temperature:
      description:
        - C(margin_c) is degrees left to the highest operating temperature. C(family) says whether the board told it
          (V(margin)), or an absolute limit from which it was taken (V(absolute)).
      type: dict
      sample: {family: margin, current_c: 36, margin_c: 50, memory_c: 44}
    events:
      description: Active reasons for a lower clock.
      type: list
      elements: str
      sample: [Idle]
    clocks_mhz:
      description: Clocks and largest clocks in MHz.
      type: dict
      sample: {sm: 345, memory: 2619, graphics: 345, video: 765, max_sm: 1980}
    fabric:
      description: Its NVLink fabric; null where the driver prints none.
      type: dict
      sample: {state: Completed, status: Success, clique_id: 1, cluster_uuid: 00000000-1111-2222-3333-444444444444,
        health: {Summary: Healthy}}
    reset_required:
      description: Whether the driver wants a reset.
      type: bool
      sample: false
    recovery_action:
      description: What the driver wants done, or null on older ones.
      type: str
      sample: None
    is_lost:
      description: Whether C(nvidia-smi) calls it lost.
      type: bool
      sample: false
    nvlinks:
      description: NVLinks with their rate in one direction, null for one that is down. Null on boards without.
      type: list
      elements: dict
      sample: [{link: 0, gbytes_per_second: 50.0}]
    nics:
      description: By PCI address of the NIC the distance in the PCI tree. On GB200 it says nothing.
      type: dict
      sample: {"0000:03:00.0": NODE}
    nearest_nic:
      description: The NIC to use; on V(nvl) boards by NUMA node only. Null where nothing tells.
      type: str
      sample: "0000:03:00.0"
count:
  description: GPUs as each of them counts.
  returned: always
  type: dict
  contains:
    pci:
      description: On the PCI bus.
      type: int
      sample: 4
    driver:
      description: Of the driver; null where it is not loaded.
      type: int
      sample: 4
    nvidia_smi:
      description: Of C(nvidia-smi); null where it said nothing.
      type: int
      sample: 4
    wanted:
      description: Of the class, or null.
      type: int
      sample: 4
driver:
  description: The driver in its parts.
  returned: always
  type: dict
  contains:
    loaded:
      description: Version of the loaded module, or null.
      type: str
      sample: 580.126.09
    is_loaded:
      description: Whether it is loaded.
      type: bool
      sample: true
    flavour:
      description: V(open), V(proprietary) or null.
      type: str
      sample: open
    on_disk:
      description: Version of the module that the next load takes, or null.
      type: str
      sample: 580.126.09
    on_disk_flavour:
      description: Its flavour.
      type: str
      sample: open
    userspace:
      description: Version of libnvidia-ml, or null.
      type: str
      sample: 580.126.09
    packages:
      description: Installed NVIDIA packages, also half-installed ones. C(held) is null where rpm is asked.
      type: list
      elements: dict
      sample: [{name: nvidia-imex, version: 580.126.09, state: installed, held: true}]
    references:
      description: References to the loaded module.
      type: int
      sample: 12
    users:
      description: Modules among them.
      type: list
      elements: str
      sample: [nvidia_modeset, nvidia_uvm]
    nouveau:
      description: Whether nouveau is loaded.
      type: bool
      sample: false
parameters:
  description: Module parameters.
  returned: always
  type: dict
  contains:
    in_force:
      description: Of the loaded module; null without one.
      type: dict
      sample: {EnableStreamMemOPs: "0", RegistryDwords: ""}
    on_disk:
      description: What the next load takes, in its order; of a name that repeats the last one counts.
      type: list
      elements: dict
      sample: [{name: EnableStreamMemOPs, value: "1", file: /etc/modprobe.d/nvidia.conf}]
units:
  description: Units of fabric manager, IMEX and persistence daemon; null where systemd could not be asked.
  returned: always
  type: list
  elements: dict
  sample: [{name: nvidia-imex.service, load: loaded, active: active, enabled: enabled}]
holders:
  description: Processes with device files of the driver open. The driver cannot be reloaded while there are any.
  returned: always
  type: list
  elements: dict
  contains:
    pid:
      description: Process.
      type: int
      sample: 4711
    comm:
      description: Its name.
      type: str
      sample: python3
    job:
      description: Its job or pod in words, or null.
      type: str
      sample: Slurm job 4242 step 0
    files:
      description: Device files.
      type: list
      elements: str
      sample: [/dev/nvidia0, /dev/nvidiactl]
    is_service:
      description: Whether it is a daemon that holds them without a job.
      type: bool
      sample: false
xids:
  description: Xids since boot, one entry for each GPU and number.
  returned: always
  type: list
  elements: dict
  contains:
    pci:
      description: PCI address of the GPU.
      type: str
      sample: "0000:9b:00.0"
    xid:
      description: Number.
      type: int
      sample: 119
    count:
      description: How often.
      type: int
      sample: 5
    first:
      description: Time of the first one, or null.
      type: str
      sample: "2026-02-23T16:24:18Z"
    last:
      description: Time of the last one, or null.
      type: str
      sample: "2026-02-23T16:30:13Z"
    text:
      description: Text of the last one.
      type: str
      sample: pid=4711, name=python3, Timeout after 6s of waiting for RPC response from GPU4 GSP!
    meaning:
      description: What it stands for, or null where our table has none.
      type: str
      sample: GSP RPC timeout
    action:
      description:
        - V(restart) the application, V(reset) the GPU, V(reboot) with a power cycle, check V(hardware), V(detail) of
          another Xid, V(note), or null where our table has none.
      type: str
      sample: reset
    source:
      description: Where meaning and action come from.
      type: str
      sample: facts 1.9
xid_source:
  description: V(journal), V(dmesg) (the last lines only), or null where nobody could be asked.
  returned: always
  type: str
  sample: journal
findings:
  description: What is wrong with the node.
  returned: always
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: GPU 0000:9b:00.0
    got:
      description: What was found.
      type: str
      sample: not among the 3 of nvidia-smi
    wanted:
      description: What was wanted.
      type: str
      sample: all GPUs of the driver
    hint:
      description: What to do.
      type: str
      sample: it fell off the bus or failed to start; look for Xids, drain the node
problems:
  description: What could not be read, in the same form.
  returned: always
  type: list
  elements: dict
  sample: [{object: nvidia-smi -q, got: the program is not installed, wanted: a block of text for each GPU,
    hint: package nvidia-utils-BRANCH}]
needs_root:
  description: What this user may not read.
  returned: always
  type: list
  elements: str
  sample: [dmesg]
record_file:
  description: Where the controller stored the result.
  returned: when there is a state directory
  type: str
  sample: /srv/inventory/.state/gpu_info/gb200-1.json
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import argspec, io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine


def main() -> None:
    module = AnsibleModule(argument_spec=argspec.info(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=argspec.timeout(module.params))
    result = io.read(machine, argspec.rails(module.params), module.params["link_layer"], argspec.wanted(module.params))
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
