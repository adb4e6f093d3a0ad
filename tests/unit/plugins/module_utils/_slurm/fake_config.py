# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with Slurm's daemons: units that run what lies in /etc/slurm, and commands that answer as 24.11.5 does."""
from __future__ import annotations

import os
import pwd
import re
import typing as t
from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import config_argspec, config_parse
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.config_configure import configure

from tests.unit.plugins.fake import FakeNode, failed, ok

ETC = "/etc/slurm"
Texts = dict[str, str]


class SlurmHost:
    """``running`` is what the daemon has read, ``refuses`` a text with which slurmctld dies."""

    def __init__(self, root: Path, version: str = "24.11.5") -> None:
        self.node = FakeNode(root)
        self.version, self.refuses, self.is_deaf = version, "\0", False
        self.running: Texts | None = None
        self.load = "loaded"
        self.log: list[str] = []
        user = pwd.getpwuid(os.getuid())
        ids = f"{user.pw_uid}:{user.pw_gid}"
        # Root first, so that each number is root's to the reader; slurm is the same one, as tests may not chown.
        self.node.put("/etc/passwd", f"root:x:{ids}::/root:/bin/sh\nslurm:x:{ids}::/:/bin/false\n")
        self.node.put("/proc/sys/kernel/hostname", "ctl1\n")
        (root / ETC[1:]).mkdir(parents=True)
        answers: dict[tuple[str, ...], t.Callable[[tuple[str, ...]], Result]] = {
            # slurmdbd and scontrol say nothing before they have a file to read.
            ("slurmctld", "-V"): self._version, ("slurmd", "-V"): self._version,
            ("systemctl", "show"): self._show, ("systemctl", "restart"): self._restart,
            ("systemctl", "stop"): lambda call: ok(), ("scontrol", "reconfigure"): self._reconfigure,
            ("scontrol", "ping"): self._ping,
            ("scontrol", "show", "config"): self._config, ("sinfo",): self._sinfo, ("env",): self._read,
            ("journalctl",): lambda call: ok("".join(f"{line}\n" for line in self.log)),
        }
        self.node.override.update(answers)

    def files(self) -> Texts:
        folder = self.node.root / ETC[1:]
        return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir()) if path.is_file()}

    def call(self, files: Texts, check_mode: bool = False, **options: t.Any) -> dict[str, t.Any]:
        defaults = {name: option.get("default") for name, option in config_argspec.spec().items()}
        params = {**defaults, "files": files, "role": "controller", **options}
        return configure(self.node.machine(), config_argspec.request(params), check_mode)

    def acts(self) -> list[tuple[str, ...]]:
        """Commands that change something."""
        return [call for call in self.node.calls
                if call[:2] in (("systemctl", "restart"), ("scontrol", "reconfigure"))]

    # -- answers --------------------------------------------------------------------------------------

    def _version(self, _call: tuple[str, ...]) -> Result:
        return ok(f"slurm-wlm {self.version}\n")

    def _show(self, call: tuple[str, ...]) -> Result:
        state = "active" if self.running is not None else "failed" if self.log else "inactive"
        both = f"LoadState={self.load}\nActiveState={state}\n"
        return ok(both if "LoadState" in call[2] else f"ActiveState={state}\n")

    def _read_files(self) -> str | None:
        """As slurmctld reads them; what it complains of."""
        files = self.files()
        for text in files.values():
            if self.refuses in text:
                return f"fatal: it does not like {self.refuses}"
        self.running = files
        return None

    def _restart(self, _call: tuple[str, ...]) -> Result:
        self.running = None
        complaint = self._read_files()
        if complaint is None:
            return ok()
        self.log += ["starting", f"slurmctld: {complaint}"]
        return failed(1, "Job for slurmctld.service failed")

    def _reconfigure(self, _call: tuple[str, ...]) -> Result:
        # 23.11 and later: a configuration that is refused is logged, and the old one stays.
        complaint = None if self.is_deaf else self._read_files()
        if complaint:
            self.log.append(f"slurmctld: error: {complaint}")
        return ok()

    def _ping(self, _call: tuple[str, ...]) -> Result:
        up = "UP" if self.running is not None else "DOWN"
        return ok(f"Slurmctld(primary) at ctl1 is {up}\nSlurmctld(backup) at ctl2 is UP\n")

    def _lines(self, files: Texts) -> list[config_parse.Line]:
        return config_parse.lines(files.get("slurm.conf", ""))

    def _config(self, _call: tuple[str, ...]) -> Result:
        text = "Configuration data as of 2026-11-30T22:00:00\n"
        for line in self._lines(self.running or {}):
            if line.first not in ("nodename", "partitionname", "slurmctldhost"):
                unit = " sec" if line.first.endswith(("timeout", "interval")) else ""
                text += f"{line.first:<23} = {line.pairs[0][1]}{unit}\n"
        return ok(text)

    def _sinfo(self, _call: tuple[str, ...]) -> Result:
        parts = [line.get("nodes") or "" for line in self._lines(self.running or {}) if line.get("partitionname")]
        return ok("".join(f"{part}\n" for part in parts))

    def _read(self, call: tuple[str, ...]) -> Result:
        """`scontrol` with SLURM_CONF: the words are those that 24.11.5 prints."""
        text = Path(call[1].removeprefix("SLURM_CONF=")).read_text(encoding="utf-8")
        bad = re.search(r"^(AuthTyp=\S+)", text, re.MULTILINE)
        if bad:
            return failed(1, "scontrol: error: _parse_next_key: Parsing error at unrecognized key: AuthTyp\n"
                             "scontrol: fatal: Unable to process configuration file\n")
        return ok("aidc1\naidc2\n")
