#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_stack
short_description: Tells the RDMA software and driver of a node, and restarts the driver of DOCA-OFED
version_added: 0.1.0
description:
  - One call reads all that a decision about the RDMA stack of a node needs - the distribution, the running kernel and
    the next one, which of the wanted packages and programs are missing, which driver is loaded and which is installed,
    the builds of DKMS, the modules that hold the driver, and Secure Boot.
  - It installs no package. The role C(rdma_stack) hands RV(install) to the package manager and calls it again.
  - With O(restart) it loads the installed driver of DOCA-OFED where another one is loaded, by C(/etc/init.d/openibd
    restart). All netdevs of the cards go and come back. What was done is judged by devices and by the loaded module,
    as C(openibd) says OK without any module.
  - The driver that is loaded and the one that is installed are two things, also to C(changed) - a restart that is
    pending is told in RV(restart_required) and RV(deferred), and changes nothing.
  - With O(flavour=doca_ofed) the call is refused before an installation if a newer kernel than the running one is
    installed, or if Secure Boot is on and the key of DKMS is not enrolled; after it, if the running or the next kernel
    has no module of DOCA-OFED.
  - The next kernel is the newest one in C(/lib/modules) that has an image in C(/boot). What a boot loader was told
    otherwise is not looked at.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details: Everything but the restart is done, so C(changed), C(diff) and RV(commands) equal those of the run.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  flavour:
    description:
      - V(inbox) wants the driver of the kernel, V(doca_ofed) that of DOCA-OFED. V(unmanaged) takes what there is.
    type: str
    choices: [inbox, doca_ofed, unmanaged]
    default: inbox
  packages:
    description:
      - Names of the packages that must be there, by family of the distribution, V(Debian) or V(RedHat). V(any) is for
        all that are not named; they are asked with C(dpkg-query).
      - A distribution without names is an error, unless O(flavour=unmanaged), which wants no package.
    type: dict
    default: {}
  programs:
    description: Programs that must be there, by name or path.
    type: list
    elements: str
    default: []
  doca_profile:
    description: The profile package of DOCA with O(flavour=doca_ofed); on Ubuntu 26.04 with a flavour of the kernel.
    type: str
    default: doca-ofed
  doca_version:
    description:
      - Exact version of O(doca_profile) in the site's repository. Needed with O(flavour=doca_ofed).
      - On RHEL the release may be left out. V(latest) and patterns are refused, as they move.
    type: str
  doca_for_next_kernel:
    description:
      - Go on if a newer kernel than the running one is installed. DKMS builds for the kernels whose headers are there.
        Afterwards both kernels must have the module.
    type: bool
    default: false
  restart:
    description: Load the installed driver of DOCA-OFED if another one, or none, is loaded.
    type: bool
    default: false
  disruption_policy:
    description:
      - V(if_idle) restarts if nobody uses the node - an RDMA connection, a process with an RDMA device or a GPU open, a
        step of Slurm, a mount over RDMA. V(force) does so also if somebody does, V(never) leaves it to a reboot.
      - No policy restarts the driver below a port that carries the connection, the default route, a network file
        system, a bridge or a bond, with virtual functions, or while a module that C(openibd) does not unload holds it.
      - Where C(rdma) cannot tell, RV(rdma_users_known) is V(false); open files, cgroups and mounts tell still.
    type: str
    choices: [if_idle, force, never]
    default: if_idle
  tool_timeout_seconds:
    description: Longest time in seconds that one question may take; less than 1 counts as 1. A restart has 300.
    type: int
    default: 10
seealso:
  - module: aidc.gpu_cluster.mlx5_info
  - module: aidc.gpu_cluster.roce_qos
  - name: DOCA installation
    description: Profiles, repositories, DKMS and Secure Boot.
    link: https://docs.nvidia.com/doca/sdk/doca-installation-guide-for-linux/index.html
  - name: openibd
    description: What a restart unloads, and when it says OK.
    link: https://github.com/Mellanox/mlnx-ofa_kernel
  - name: FaaSMem 1
    description: No modules for the kernel, and openibd prints OK.
    link: https://github.com/BarrinXu/FaaSMem/issues/1
  - name: doca-driver-build 481
    description: Holders of the driver make a restart fail.
    link: https://github.com/Mellanox/doca-driver-build/issues/481
notes:
  - Needs root for O(restart) only. A lock on the host, C(/run/lock/aidc.lock), then keeps two runs apart.
  - After a restart QoS, rings and other running values are the driver's defaults again; run their roles after it.
"""

EXAMPLES = r"""
- name: What is there and what is missing
  aidc.gpu_cluster.rdma_stack:
    packages:
      Debian: [rdma-core, ibverbs-utils, perftest, mstflint, ethtool, lldpd]
      RedHat: [rdma-core, libibverbs-utils, librdmacm-utils, perftest, mstflint, ethtool, lldpd]
    programs: [ibv_devinfo, ethtool, mstconfig]

- name: DOCA-OFED is installed and loaded, at a time when nobody uses the cards
  aidc.gpu_cluster.rdma_stack:
    flavour: doca_ofed
    doca_version: 3.2.1-044000
    packages:
      Debian: [ethtool, lldpd, mstflint]
    restart: true
    disruption_policy: if_idle
  become: true
"""

RETURN = r"""
before:
  description: The driver as it was.
  returned: success
  type: dict
  contains: &state
    loaded:
      description: The loaded mlx5_core; C(kind) is V(inbox), V(ofed) or null. The kernel's own has no version.
      type: dict
      sample: {kind: inbox, version: null, srcversion: 0B2A3E6C94D4B6C7F2D1A55}
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
  sample: [[/etc/init.d/openibd, restart]]
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
      sample: [/etc/init.d/openibd, restart]
    disruptive:
      description: V(driver), as all devices of the driver go and come back.
      type: str
      sample: driver
    why:
      description: The reason for the step.
      type: str
      sample: the kernel's own driver is loaded, that of DOCA-OFED (25.10-1.7.1) is installed for kernel 6.8.0-31
deferred:
  description: Who is in the way of a restart that is wanted; it was then not done.
  returned: success
  type: list
  elements: dict
  contains:
    holder:
      description: A module, a netdev, a process, a PCI function or the policy.
      type: str
      sample: nvidia_peermem
    why:
      description: What it does.
      type: str
      sample: uses ib_uverbs, and openibd does not unload it
rdma_users_known:
  description: Whether all users could be seen; null if no restart was in question.
  returned: success
  type: bool
  sample: true
os:
  description: The distribution; C(family) is V(Debian), V(RedHat) or its own id.
  returned: success
  type: dict
  sample: {id: ubuntu, version: "24.04", codename: noble, family: Debian}
kernels:
  description: Releases of kernels.
  returned: success
  type: dict
  contains:
    running:
      description: The running one.
      type: str
      sample: 6.8.0-31-generic
    next:
      description: The newest one installed, which the next boot takes.
      type: str
      sample: 6.8.0-40-generic
    installed:
      description: All that can be booted, the newest last.
      type: list
      elements: str
      sample: [6.8.0-31-generic, 6.8.0-40-generic]
packages:
  description: Those of the wanted packages that are installed, with their versions.
  returned: success
  type: dict
  sample: {rdma-core: 50.0-2ubuntu0.2}
missing_packages:
  description: Wanted packages that are not there, or not in the wanted version.
  returned: success
  type: list
  elements: str
  sample: [doca-ofed]
install:
  description: The same as the package manager takes it, the profile with its version.
  returned: success
  type: list
  elements: str
  sample: [doca-ofed=3.2.1-044000]
missing_programs:
  description: Wanted programs that are not there.
  returned: success
  type: list
  elements: str
  sample: [ibv_devinfo]
stack:
  description: Drivers.
  returned: success
  type: dict
  contains:
    wanted:
      description: V(inbox) or V(ofed), null with O(flavour=unmanaged).
      type: str
      sample: ofed
    loaded:
      description: As in RV(after).
      type: dict
      sample: {kind: ofed, version: 25.10-1.7.1, srcversion: 5A1D60E88DC2B1D2A94C0E1}
    installed:
      description: The mlx5_core that modprobe takes with the running kernel.
      type: dict
      sample: {kind: ofed, version: 25.10-1.7.1, srcversion: 5A1D60E88DC2B1D2A94C0E1,
        filename: /lib/modules/6.8.0-31-generic/updates/dkms/mlx5_core.ko}
    next_kernel:
      description: The same for the next kernel; C(kind) null if it has none.
      type: dict
      sample: {kind: null, version: null, srcversion: null, filename: null}
    package:
      description: What C(ofed_info -s) names, which need not be loaded.
      type: str
      sample: OFED-internal-25.10-1.7.1
    dkms:
      description: Builds of DKMS; without a kernel only registered.
      type: list
      elements: dict
      sample: [{name: mlnx-ofed-kernel, version: 25.10.OFED.25.10.1.7.1.1, kernel: 6.8.0-31-generic, state: installed,
        note: ""}]
dependants:
  description:
    - Loaded modules that hold C(ib_core) or C(mlx5_core), themselves or through others. V(stack) is unloaded by
      C(openibd), V(blocker) is known to be in its way, V(other) is not known.
  returned: success
  type: list
  elements: dict
  sample: [{name: ib_uverbs, uses: [ib_core], role: stack}, {name: nvidia_peermem, uses: [ib_uverbs], role: blocker}]
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
  sample: [{object: kernel, got: 6.8.0-31-generic running, wanted: "6.8.0-40-generic, the newest one installed",
    hint: "the next boot takes it, if the boot loader was not told otherwise"}]
restart_required:
  description: Whether the loaded driver is another one than the installed one.
  returned: success
  type: bool
  sample: true
restart_reason:
  description: Why, else null.
  returned: success
  type: str
  sample: the kernel's own driver is loaded, that of DOCA-OFED (25.10-1.7.1) is installed for kernel 6.8.0-31-generic
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: mlx5_core of kernel 6.8.0-40-generic
    got:
      description: What was found.
      type: str
      sample: the kernel's own driver
    wanted:
      description: What was wanted.
      type: str
      sample: that of DOCA-OFED
    hint:
      description: What to do.
      type: str
      sample: DKMS has no build for it; are its headers installed?
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack.configure import configure


def main() -> None:
    module = AnsibleModule(argument_spec=argspec.rdma_stack(), supports_check_mode=True)
    machine = Machine(tool_timeout_seconds=argspec.timeout(module.params))
    try:
        result = configure(machine, argspec.request(module.params), module.check_mode)
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
