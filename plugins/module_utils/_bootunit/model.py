# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The boot tool's files on a host, and what a call of fabric_boot wants of them."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._host.installed import Present

TOOL = "/usr/libexec/aidc/aidc-fabric.pyz"
UNIT = "aidc-fabric.service"
SERVICE, TEMPLATE = f"/etc/systemd/system/{UNIT}", "/etc/systemd/system/aidc-fabric@.service"
RULE = "/etc/udev/rules.d/90-aidc-fabric.rules"
# Stands from the first write until systemd and udev have read the files; /run is empty after a boot.
PENDING_FILE = "/run/aidc/fabric-boot.pending"
HEADER = "# Written by aidc.gpu_cluster.fabric_boot, which rewrites it: do not edit."
TOOL_MODE, FILE_MODE = 0o755, 0o644

# openibd loads the driver, a manager of the network gives the addresses [mlx5-roce 4.8]. Without Wants=, as
# network-online.target waits for every port, also for those without a cable. Jobs must not start before it.
SERVICE_TEXT = """\
{header}
[Unit]
Description=RoCE fabric of this node as /etc/aidc/intent.json says
After=openibd.service systemd-networkd.service NetworkManager.service networking.service network-online.target
Before=slurmd.service kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={python} {tool} apply --reason boot
TimeoutStartSec=10min
SyslogIdentifier=aidc-fabric

[Install]
WantedBy=multi-user.target
"""
# Not RemainAfterExit: each device that comes starts it again. It also runs while openibd restarts the driver; then it
# waits for the end of that.
TEMPLATE_TEXT = """\
{header}
[Unit]
Description=RoCE fabric of this node after %i came
After=openibd.service systemd-networkd.service NetworkManager.service networking.service network-online.target
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStart={python} {tool} apply --reason udev:%i
TimeoutStartSec=10min
SyslogIdentifier=aidc-fabric
"""
# systemd starts the unit; RUN would hold udev up, and udev kills what takes long [udev(7)].
RULE_TEXT = """\
{header}
SUBSYSTEM=="net", ACTION=="add|move", DRIVERS=="mlx5_core", TAG+="systemd", \
ENV{{SYSTEMD_WANTS}}+="aidc-fabric@$name.service"
"""

State = t.Literal["present", "absent"]


@dataclass(frozen=True)
class Request:
    """``digest`` is the SHA-256 of the tool, ``source`` where its bytes are, if they came along."""

    state: State = "present"
    digest: str = ""
    source: str = ""
    python: str = "/usr/bin/python3"
    check_drift: bool = True

    @property
    def texts(self) -> dict[str, str]:
        words = {"header": HEADER, "python": self.python, "tool": TOOL}
        return {SERVICE: SERVICE_TEXT.format(**words), TEMPLATE: TEMPLATE_TEXT.format(**words),
                RULE: RULE_TEXT.format(**words)}


@dataclass(frozen=True)
class Node:
    """``enabled`` is systemd's word: enabled, disabled, masked, not-found ..."""

    files: dict[str, Present] = field(default_factory=dict)
    enabled: str = ""
    pending: bool = False


@dataclass(frozen=True)
class Step:
    """("write", path), ("remove", path), or an argv list."""

    command: tuple[str, ...]
    why: str
    text: str | None = None
    mode: int = FILE_MODE

    def as_dict(self) -> dict[str, t.Any]:
        return {"command": list(self.command), "disruptive": "none", "why": self.why}
