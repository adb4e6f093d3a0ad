# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What which version of Slurm has. Data with a source per row: sections of driver-slurm-k8s, or manuals."""
from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

_VERSION = re.compile(r"(?:slurm(?:-wlm)?[ -])?([0-9]{2})\.([0-9]{2})(?:[.-]([0-9A-Za-z.-]+))?")


class VersionError(ValueError):
    """A text that is no version of Slurm."""


@dataclass(frozen=True, order=True)
class Version:
    """A release family, such as 24.11: features come with these, not with their updates."""

    year: int
    month: int

    def __str__(self) -> str:
        return f"{self.year:02d}.{self.month:02d}"


def parse(text: t.Any) -> Version:
    """From `24.11.5`, `24.11` or what `slurmctld -V` prints (`slurm 24.11.5`, `slurm-wlm 22.05.8`)."""
    found = _VERSION.match(str(text).strip())
    if not found:
        raise VersionError(f"{str(text or 'nothing')!r} is not a version of Slurm such as '24.11.5' (in quotes)")
    return Version(int(found[1]), int(found[2]))


@dataclass(frozen=True)
class Feature:
    since: Version
    what: str
    source: str


# The oldest one that the roles are for: Debian 12's.
OLDEST = Version(22, 5)
FEATURES: dict[str, Feature] = {
    "cgroup_disabled": Feature(Version(23, 2), "CgroupPlugin=disabled",
                               "3.2: 22.05's slurmd dies of it; simulation 0.2: 24.11 runs with it"),
    "reconfigure_restarts": Feature(Version(23, 11), "scontrol reconfigure has the daemons start again by themselves",
                                    "3.5"),
    "block_topology": Feature(Version(24, 5), "topology/block", "3.2, issue 10: used from 24.05 on"),
    "nvidia_imex": Feature(Version(24, 5), "switch/nvidia_imex", "3.2; CVE-2024-42511 is fixed in 24.05.2: 3.4"),
    "reconfigure_nodes": Feature(Version(24, 11), "nodes come and go with scontrol reconfigure", "3.5"),
    "topology_yaml": Feature(Version(25, 5), "topology.yaml, a topology for each partition",
                             "3.4, topology.yaml(5)"),
}


def has(version: Version, feature: str) -> bool:
    return version >= FEATURES[feature].since
