# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What is wrong with the driver: not loaded, versions, flavour, packages, module parameters. Pure."""
from __future__ import annotations

import typing as t

from .._host.errors import Problem
from . import parse_driver
from .judge import Node
from .model import Driver, Setting, Wanted, same_version
from .tables import Flavour, board, helper

# A file of modprobe.d reaches the module through the initramfs [driver-slurm-k8s.md 0.10].
_REBUILD = "rebuild the initramfs, then reload the driver or reboot"
_ONE_STRING = "RegistryDwords"


def _loaded(node: Node) -> list[Problem]:
    found = []
    if node.driver.nouveau:
        found.append(Problem("module nouveau", "loaded", "not loaded",
                             "blacklist it, rebuild the initramfs and reboot"))
    if node.pcis and not node.driver.is_loaded:
        disk = node.driver.on_disk
        found.append(Problem("module nvidia", "not loaded", "loaded", f"{disk} is on disk; look at dmesg" if disk
                             else "no module for the running kernel; is the driver installed?"))
    return found


def _versions(driver: Driver) -> list[Problem]:
    """The loaded one is what the others are compared with: four versions that must agree [driver-slurm-k8s.md 0.2]."""
    loaded = driver.loaded
    if loaded is None:
        return []
    found = []
    if driver.on_disk and not same_version(driver.on_disk, loaded):
        found.append(Problem("nvidia on disk", driver.on_disk, f"{loaded}, which is loaded",
                             "an update has not been loaded yet; reload the driver or reboot"))
    if driver.userspace and not same_version(driver.userspace, loaded):
        found.append(Problem("libnvidia-ml", driver.userspace, f"{loaded}, which is loaded",
                             "nvidia-smi and CUDA fail until they agree; reload the driver or reboot"))
    for package in driver.packages:
        if helper(package.name) and not same_version(package.version, loaded):
            found.append(Problem(f"package {package.name}", package.version, f"{loaded}, which is loaded",
                                 "install the same version, and hold the whole set"))
    return found


def _wanted(driver: Driver, wanted: Wanted) -> list[Problem]:
    if wanted.driver_version and driver.loaded and not same_version(driver.loaded, wanted.driver_version):
        return [Problem("nvidia", f"{driver.loaded} loaded", f"{wanted.driver_version}, as the class says",
                        "install that version, hold the whole set, then reload the driver or reboot")]
    return []


def _flavour(node: Node, wanted: Wanted) -> list[Problem]:
    """Blackwell and Grace Hopper run with the open modules only [driver-slurm-k8s.md 1.1]."""
    needed: dict[Flavour, str] = {}
    for one in node.pcis:
        known = board(one.pci_id)
        if known is not None and known.flavour is not None:
            needed[known.flavour] = f"which {one.pci_id} needs"
    if wanted.flavour is not None:
        needed.setdefault(wanted.flavour, "as the class says")
    return [Problem(where, f"the {got} kernel module", f"the {flavour} one, {why}",
                    "install the other flavour of the same branch")
            for where, got in (("nvidia", node.driver.flavour), ("nvidia on disk", node.driver.on_disk_flavour))
            for flavour, why in needed.items() if got is not None and got != flavour]


def _packages(driver: Driver) -> list[Problem]:
    return [Problem(f"package {one.name}", one.state, "installed", "dpkg --configure -a, then look at its output")
            for one in driver.packages if one.state != "installed"]


def effective(settings: t.Iterable[Setting]) -> dict[str, Setting]:
    """The last one wins."""
    return {one.name: one for one in settings}


def _parameters(node: Node, wanted: Wanted) -> list[Problem]:
    found = []
    dwords = [one for one in node.settings if one.name == _ONE_STRING]
    if len(dwords) > 1:
        files = " and ".join(dict.fromkeys(one.file for one in dwords))
        found.append(Problem(f"NVreg_{_ONE_STRING}", f"set {len(dwords)} times: {files}", "set once",
                             f"they do not add up, only {dwords[-1].file} counts; merge them into one"))
    if node.in_force is None:
        return found
    for name, setting in effective(node.settings).items():
        value = node.in_force.get(name)
        if value is None and name in node.driver.options:
            # It is an option, and one that params does not show.
            continue
        if value is None:
            found.append(Problem(f"NVreg_{name}", "unknown to the loaded driver", f"{setting.value} of {setting.file}",
                                 "misspelt, of another branch, or a key of NVreg_RegistryDwords"))
        elif not parse_driver.same_parameter(name, value, setting.value):
            found.append(Problem(f"NVreg_{name}", f"{value or 'nothing'} in force",
                                 f"{setting.value} of {setting.file}", _REBUILD))
    for name, asked in wanted.module_parameters.items():
        value = node.in_force.get(name)
        if value is None or not parse_driver.same_parameter(name, value, asked):
            found.append(Problem(f"NVreg_{name}", f"{value or 'nothing'} in force", f"{asked}, as the class says",
                                 f"set it in one file of modprobe.d, {_REBUILD}"))
    return found


def findings(node: Node, wanted: Wanted) -> list[Problem]:
    driver = node.driver
    return [*_loaded(node), *_versions(driver), *_wanted(driver, wanted), *_flavour(node, wanted), *_packages(driver),
            *_parameters(node, wanted)]
