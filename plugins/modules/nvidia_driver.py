#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_driver
short_description: The NVIDIA driver of a node as one pinned set - packages, options, holds, reload
version_added: 0.1.0
description:
  - One call reads all that a decision about the driver needs - distribution, kernels, packages with their holds, the
    version that is loaded, on the disk and in userspace, the module of the next kernel, builds of DKMS, options in
    force and in files, Secure Boot - and says what is missing, what stands in the way, and what a reboot needs.
  - It installs no package. RV(install) has the set with exact versions, which the role C(nvidia_driver) hands to the
    package manager before it calls the module again.
  - It writes what keeps the set together - C(/etc/apt/preferences.d/aidc-nvidia), which lets apt take no other version
    of NVIDIA's packages than O(version), also of those that others pull in; on RHEL the module stream; holds of apt or
    locks of dnf when all is installed.
  - Options of the kernel module and the ban of nouveau stand in C(/etc/modprobe.d/aidc-nvidia.conf) alone. An
    initramfs that is older than this file is built again, also after a run that was killed.
  - With O(reload) it loads the driver that is on the disk where another one, or none, is loaded, or where options are
    not in force. Who has a device file open is never disturbed; the result is then RV(reboot_required) with the holder
    in RV(deferred). C(changed) does not flip while a reboot is pending.
  - RV(reboot_allowed) is false as long as the next kernel has no module of the driver, its build failed, the firmware
    would refuse it, or the initramfs is old. Nothing is rebooted here.
  - On a node without an NVIDIA GPU nothing is asked and nothing is done. On DGX OS nothing is changed, as with
    O(manage=false).
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details:
      - C(changed), C(diff) and RV(commands) equal those of the run. Where the repositories are not there yet,
        RV(install) has patterns instead of exact versions.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  version:
    description:
      - Full version of the driver. A branch, or V(latest), is refused, as it moves. Needed with O(manage).
    type: str
  flavour:
    description: The open kernel modules, which Blackwell boards and DMA-BUF need, or the proprietary ones.
    type: str
    choices: [open, proprietary]
    default: open
  board:
    description:
      - V(nvl) is a tray of an NVLink domain, whose set has IMEX. V(nvswitch) is a board with NVSwitches of its own,
        whose set has the fabric manager. V(pcie) has neither. Left out, the PCI id of the GPUs tells.
    type: str
    choices: [nvl, nvswitch, pcie]
  repository:
    description:
      - V(cuda) is NVIDIA's own repository, with modules that DKMS builds. V(distribution) is the archive of Ubuntu,
        with signed modules for each of its kernels. A node has packages of one of them; the other's are refused.
    type: str
    choices: [cuda, distribution]
    default: cuda
  module_options:
    description:
      - Options of the kernel module by name, with or without C(NVreg_). None is set that is not named here.
      - An option that a file of somebody else sets as well is a finding. The last file wins, so no reload is done.
    type: dict
    default: {}
  registry_dwords:
    description: Keys of C(NVreg_RegistryDwords), merged into its one string with those of O(module_options).
    type: dict
    default: {}
  hold:
    description: Hold the whole set, so that no unattended upgrade moves a part of it.
    type: bool
    default: true
  replace_holds:
    description:
      - Go on although packages are held, in another version, that this module has not held. Which ones are its own is
        kept in C(/etc/aidc/nvidia_driver_holds.json).
    type: bool
    default: false
  reload:
    description: Load the driver that is on the disk without a reboot, where nobody is in the way.
    type: bool
    default: true
  reload_in_domain:
    description:
      - Reload also while IMEX runs on a tray of an NVLink domain. The tray drops out of the domain, and with it the
        jobs of all its trays, so drain the rack first.
    type: bool
    default: false
  disruption_policy:
    description:
      - V(if_idle) reloads if no process has a device file open but services that are stopped for it
        (C(nvidia-persistenced), C(nvidia-imex), C(nvidia-fabricmanager), C(nvidia-dcgm)), and no step of Slurm runs.
      - V(force) does not look at steps without a device file. V(never) leaves it to a reboot.
    type: str
    choices: [if_idle, force, never]
    default: if_idle
  manage:
    description: With V(false) nothing is changed or refused; all is read and judged.
    type: bool
    default: true
  allow_known_bad:
    description: Rows of O(known_bad) that do not refuse, by id.
    type: list
    elements: str
    default: []
  package_sets:
    description: Rows of package sets; those of the collection, C(roles/nvidia_driver/files/package_sets.yml), if empty.
    type: list
    elements: dict
    default: []
  known_bad:
    description:
      - Rows of versions that are known to be bad; those of the collection, C(roles/nvidia_driver/files/known_bad.yml),
        if empty. A row that refuses stops an installation, and never a node that runs the version.
    type: list
    elements: dict
    default: []
  tool_timeout_seconds:
    description:
      - Longest time in seconds that one question may take; less than 1 counts as 1. A question to a repository has 120,
        a command that changes something 600.
    type: int
    default: 30
seealso:
  - module: aidc.gpu_cluster.gpu_info
  - module: aidc.gpu_cluster.rdma_stack
  - name: NVIDIA driver installation guide
    description: Kernel modules, version locking, packages by distribution.
    link: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
notes:
  - Needs root. A lock on the host, C(/run/lock/aidc.lock), keeps two runs apart.
  - The next kernel is the newest one in C(/lib/modules) that has an image in C(/boot).
"""

EXAMPLES = r"""
- name: What is there, and what is missing for a tray of an NVLink domain; nothing is installed
  aidc.gpu_cluster.nvidia_driver:
    version: 580.159.04
    board: nvl
    module_options:
      CoherentGPUMemoryMode: driver
  become: true
  register: driver

- name: Only judge what somebody else has installed
  aidc.gpu_cluster.nvidia_driver:
    manage: false
  become: true

- name: Options that two users of the GPUs need, in one string
  aidc.gpu_cluster.nvidia_driver:
    version: 580.159.04
    module_options:
      EnableStreamMemOPs: 1
    registry_dwords:
      PeerMappingOverride: 1
      RMForceStaticBar1: 1
  become: true
"""

RETURN = r"""
before:
  description: The driver as it was.
  returned: success
  type: dict
  contains: &state
    loaded:
      description: Version of the loaded module; null without one.
      type: str
      sample: 580.126.09
    flavour:
      description: V(open) or V(proprietary), of the loaded module.
      type: str
      sample: open
    on_disk:
      description: Version of the module that the running kernel would load.
      type: str
      sample: 580.159.04
    userspace:
      description: Version of libnvidia-ml.
      type: str
      sample: 580.159.04
    helpers:
      description: Version of each helper that must be the driver's - fabric manager, IMEX, NSCQ.
      type: dict
      sample: {nvidia-imex: 580.159.04}
    held:
      description: Packages that are held or locked.
      type: list
      elements: str
      sample: [nvidia-dkms-580-open, nvidia-utils-580]
    options_file:
      description: Text of C(/etc/modprobe.d/aidc-nvidia.conf).
      type: str
      sample: "blacklist nouveau\noptions nouveau modeset=0\n"
    pin_file:
      description: Text of C(/etc/apt/preferences.d/aidc-nvidia).
      type: str
      sample: "Package: *nvidia*\nPin: version 580.159.04-*\nPin-Priority: 1001\n"
    stream:
      description: Stream of dnf's module C(nvidia-driver) that is enabled.
      type: str
      sample: 580-open
after:
  description: The driver as it is now; in check mode, as it would be.
  returned: success
  type: dict
  contains: *state
commands:
  description: What was done, in check mode what would be done; one list per step.
  returned: always
  type: list
  elements: list
  sample: [[write, /etc/modprobe.d/aidc-nvidia.conf], [update-initramfs, -u, -k, all]]
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
      sample: [modprobe, -r, nvidia]
    disruptive:
      description: V(none) or V(driver).
      type: str
      sample: driver
    why:
      description: The reason for the step.
      type: str
      sample: 580.126.09 is loaded, 580.159.04 is on the disk
deferred:
  description: Who is in the way of a reload that is wanted; it was then not done.
  returned: success
  type: list
  elements: dict
  contains:
    holder:
      description: A process, a job, a module, a unit or the policy.
      type: str
      sample: Slurm job 4242 step 0 (pid 4711 python3)
    why:
      description: What it does.
      type: str
      sample: has /dev/nvidia0 open
users_known:
  description: Whether all processes could be looked at; null if no reload was in question.
  returned: success
  type: bool
  sample: true
managed:
  description: Whether the node is changed; not with O(manage=false), on DGX OS, or without a GPU.
  returned: success
  type: bool
  sample: true
os:
  description: The distribution.
  returned: success
  type: dict
  sample: {id: ubuntu, version: "24.04", codename: noble, family: Debian}
architecture:
  description: What C(uname -m) says.
  returned: success
  type: str
  sample: aarch64
kernels:
  description: Releases of kernels - the running one, the next one, all that can be booted.
  returned: success
  type: dict
  sample: {running: 6.8.0-31-generic, next: 6.8.0-40-generic, installed: [6.8.0-31-generic, 6.8.0-40-generic]}
gpus:
  description: PCI addresses of the GPUs.
  returned: success
  type: list
  elements: str
  sample: ["0008:01:00.0"]
package_set:
  description: Id of the row in O(package_sets) that fits; null where nothing is managed.
  returned: success
  type: str
  sample: ubuntu-cuda-580
manager:
  description: The set's package manager.
  returned: success
  type: str
  sample: apt
packages:
  description: NVIDIA's packages and others of the set that are installed, with the upstream version.
  returned: success
  type: dict
  sample: {nvidia-utils-580: 580.159.04}
missing_packages:
  description: Packages of the set that are not there, or in another version.
  returned: success
  type: list
  elements: str
  sample: [nvidia-dkms-580-open]
install:
  description: The same as the package manager takes it.
  returned: success
  type: list
  elements: str
  sample: [nvidia-dkms-580-open=580.159.04-1ubuntu1]
modules:
  description: The module nvidia on the disk, for the running kernel and the next one.
  returned: success
  type: dict
  sample: {6.8.0-31-generic: {version: 580.159.04, flavour: open}}
dkms:
  description: Builds of DKMS.
  returned: success
  type: list
  elements: dict
  sample: [{name: nvidia, version: 580.159.04, kernel: 6.8.0-31-generic, state: installed, note: ""}]
secure_boot:
  description: Whether Secure Boot is on; null where C(mokutil) or UEFI is not there.
  returned: success
  type: bool
  sample: false
findings:
  description: What an operator should know, with object, got, wanted and hint.
  returned: success
  type: list
  elements: dict
  sample: [{object: libnvidia-ml, got: 580.159.04, wanted: "580.126.09, which is loaded",
    hint: "nvidia-smi and CUDA fail until they agree; reload the driver or reboot"}]
reboot_required:
  description: Whether only a reboot, or a reload that was deferred, brings the node to what is on its disk.
  returned: success
  type: bool
  sample: true
reboot_reasons:
  description: Why, with who is in the way of a reload.
  returned: success
  type: list
  elements: str
  sample: ["580.126.09 is loaded, 580.159.04 is on the disk; not reloaded: pid 4711 python3 has /dev/nvidia0 open"]
reboot_allowed:
  description: Whether the next boot would come up with the driver.
  returned: success
  type: bool
  sample: false
reboot_blockers:
  description: Why not, with object, got, wanted and hint.
  returned: success
  type: list
  elements: dict
  sample: [{object: nvidia of kernel 6.8.0-40-generic, got: none, wanted: 580.159.04,
    hint: "DKMS has no build for it, and no package of modules is for it; are its headers installed?"}]
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: package nvidia-headless-no-dkms-570-server-open
    got:
      description: What was found.
      type: str
      sample: 580.126.09-0ubuntu0.24.04.1
    wanted:
      description: What was wanted.
      type: str
      sample: 570.211.01
    hint:
      description: What to do.
      type: str
      sample: "a transitional package: its branch was emptied, and it pulls the newer one"
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.configure import configure


def main() -> None:
    module = AnsibleModule(argument_spec=argspec.nvidia_driver(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=argspec.timeout(module.params))
    try:
        result = configure(machine, argspec.request(module.params), module.check_mode)
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
