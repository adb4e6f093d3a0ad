# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Parse what files and package managers say of the driver. Raises ValueError for text that is not theirs."""
from __future__ import annotations

import re
import shlex
import typing as t

from .model import Driven, Package, Setting, pci_address
from .tables import Flavour

_PREFIX = "NVreg_"
# Debian calls the module nvidia-current on disk; a dash and an underscore are one to the kernel.
_MODULES = ("nvidia", "nvidia_current")
KERNEL_COMMAND_LINE = "/proc/cmdline"
_LIBRARY = re.compile(r"libnvidia-ml\.so\.(\d+\.\d+(?:\.\d+)*)")
_PACKAGE_VERSION = re.compile(r"(?:\d+:)?(\d+(?:\.\d+)*)")
DPKG_FORMAT = "${Package}\\t${Version}\\t${db:Status-Want}\\t${db:Status-Status}\\n"
RPM_FORMAT = "%{NAME}\\t%{VERSION}\\n"
# A package that was removed, or never there, is no package.
_ABSENT = ("not-installed", "config-files")


def _lines(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    return found


def information(text: str) -> Driven:
    """/proc/driver/nvidia/gpus/ADDRESS/information [driver-slurm-k8s.md 1.4]; a blank file is a GPU in trouble."""
    values = _lines(text)
    if "Bus Location" not in values:
        raise ValueError("no line Bus Location")
    minor = values.get("Device Minor", "")
    return Driven(
        pci_address(values["Bus Location"]), values.get("Model"), values.get("GPU UUID"),
        int(minor) if minor.isdigit() else None, values.get("GPU Firmware"),
        {"Yes": True, "No": False}.get(values.get("GPU Excluded", "")))


def parameters(text: str) -> dict[str, str]:
    """/proc/driver/nvidia/params: ``Name: value``, strings in quotes."""
    return {name.replace(_PREFIX, "", 1): value.strip('"') for name, value in _lines(text).items()}


def _settings(words: t.Iterable[str], file: str) -> list[Setting]:
    found = []
    for word in words:
        name, equals, value = word.partition("=")
        if name.startswith(_PREFIX):
            found.append(Setting(name[len(_PREFIX):], value.strip('"') if equals else "1", file))
    return found


def options(text: str, file: str) -> list[Setting]:
    """``options nvidia NVreg_...`` lines of one file of modprobe.d, in their order."""
    found: list[Setting] = []
    for line in text.replace("\\\n", " ").splitlines():
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            words = line.split()
        if len(words) > 2 and words[0] == "options" and words[1].replace("-", "_") in _MODULES:
            found += _settings(words[2:], file)
    return found


def command_line(text: str) -> list[Setting]:
    """``nvidia.NVreg_...`` on the kernel's command line, which modprobe takes after its files [kmod libkmod-config]."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return _settings((word.partition(".")[2] for word in words
                      if word.partition(".")[0].replace("-", "_") in _MODULES), KERNEL_COMMAND_LINE)


def parameter_value(text: str) -> int | str:
    """As the kernel takes it: 0x10 is 16 and 0660 is 432, a negative one wraps; else the text."""
    value = text.strip().strip('"')
    digits = value.lstrip("-")
    try:
        number = int(digits, 8 if re.fullmatch(r"0[0-7]+", digits) else 0)
    except ValueError:
        return value
    return (-number if value.startswith("-") else number) % 2 ** 32


def dwords(text: str) -> dict[str, str]:
    """``A=1;B=0x2;`` of RegistryDwords."""
    pairs = (part.partition("=") for part in text.split(";") if part.strip())
    return {name.strip(): value.strip() for name, _equals, value in pairs}


def same_parameter(name: str, one: str, other: str) -> bool:
    if name == "RegistryDwords":
        first, second = dwords(one), dwords(other)
        return set(first) == set(second) and all(
            parameter_value(first[key]) == parameter_value(second[key]) for key in first)
    return parameter_value(one) == parameter_value(other)


def flavour_of_licence(licence: str) -> Flavour | None:
    """Licence of the module on disk: NVIDIA/open-gpu-kernel-modules is MIT and GPL, the other one NVIDIA's."""
    if not licence:
        return None
    return "proprietary" if licence == "NVIDIA" else "open"


def library_version(names: t.Iterable[str]) -> str | None:
    """Of the file names of a library folder: libnvidia-ml.so.580.126.09. Several files are several versions: none."""
    found = {match.group(1) for name in names if (match := _LIBRARY.fullmatch(name))}
    return found.pop() if len(found) == 1 else None


def package_version(text: str) -> str:
    """``1:580.126.09-0ubuntu1`` is 580.126.09."""
    match = _PACKAGE_VERSION.match(text)
    return match.group(1) if match else text


def dpkg(text: str) -> tuple[Package, ...]:
    """``dpkg-query -W`` in DPKG_FORMAT; half-installed ones too."""
    found = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != 4:
            raise ValueError(f"{len(fields)} fields, not 4: {line[:80]!r}")
        name, version, want, state = fields
        if state not in _ABSENT:
            found.append(Package(name, package_version(version), state, want == "hold"))
    return tuple(found)


def rpm(text: str) -> tuple[Package, ...]:
    """``rpm -qa`` in RPM_FORMAT."""
    found = []
    for line in text.splitlines():
        name, tab, version = line.partition("\t")
        if not tab:
            raise ValueError(f"no tab: {line[:80]!r}")
        found.append(Package(name, package_version(version)))
    return tuple(found)
