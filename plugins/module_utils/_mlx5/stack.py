# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Which driver stack is loaded: the kernel's own or DOCA-OFED. Never touches the machine."""
from __future__ import annotations

import re
import typing as t
from dataclasses import asdict, dataclass, field

from .._host.errors import Problem

# Only OFED has these modules; dkms, extra and weak-updates are where it puts its own mlx5_core.
OFED_MODULES = ("mlx_compat", "mlxdevm")
_OFED_PLACE = re.compile(r"/(updates|extra|weak-updates)/")
_INBOX_PLACE = "/kernel/"


@dataclass(frozen=True)
class Stack:
    """``backend`` follows the loaded module; ``package`` and ``installed`` may differ from it."""

    backend: t.Literal["inbox", "ofed"] | None = None
    version: str | None = None
    installed: t.Literal["inbox", "ofed"] | None = None
    installed_version: str | None = None
    package: str | None = None
    findings: tuple[Problem, ...] = field(default=())

    def as_data(self) -> dict[str, t.Any]:
        return {key: value for key, value in asdict(self).items() if key != "findings"}


def modinfo(text: str) -> dict[str, str]:
    """First value of each key of ``modinfo MODULE``."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.partition(":")
        if separator:
            found.setdefault(key.strip(), value.strip())
    return found


def installed(info: t.Mapping[str, str]) -> t.Literal["inbox", "ofed"] | None:
    """Whose the module on disk is, by its place; ``intree: Y`` is the kernel's own too."""
    place = info.get("filename", "")
    if _OFED_PLACE.search(place) or "basedon" in info:
        return "ofed"
    return "inbox" if _INBOX_PLACE in place or info.get("intree") == "Y" or place == "(builtin)" else None


def ofed_package(text: str) -> str | None:
    """``MLNX_OFED_LINUX-24.10-1.1.4.0:`` or ``OFED-internal-25.10-1.7.1:`` without the colon."""
    first = text.strip().splitlines()[0].strip() if text.strip() else ""
    return first.rstrip(":") if re.match(r"\S*OFED\S*:?$", first) else None


def judge(modules: t.Collection[str], loaded_version: str | None, loaded_source: str | None, bound: bool,
          info: t.Mapping[str, str], package: str | None) -> Stack:
    """``bound``: the driver has a device, so it is loaded, as a module or built in."""
    backend: t.Literal["inbox", "ofed"] | None = None
    if bound or "mlx5_core" in modules:
        # A version with a dash is OFED's; old kernels had a plain one, such as 5.0-0 of RHEL, so modules count first.
        backend = "ofed" if set(OFED_MODULES) & set(modules) else "inbox"
    on_disk, findings = installed(info), []
    if package and backend == "inbox":
        findings.append(Problem("mlx5_core", "the kernel's own driver loaded", f"that of {package}, which is installed",
                                "its modules were not built for this kernel, or an old initramfs loaded first"))
    source = info.get("srcversion")
    if loaded_source and source and loaded_source != source:
        findings.append(Problem("mlx5_core", f"srcversion {loaded_source} loaded", f"{source}, which is installed",
                                "reload the driver or reboot"))
    return Stack(backend, loaded_version, on_disk, info.get("version"), package, tuple(findings))
