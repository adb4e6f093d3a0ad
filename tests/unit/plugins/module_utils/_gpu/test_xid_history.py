# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import xid_history

LINE = "NVRM: Xid (PCI:{pci}): {xid}, {text}\n"
TEXT = "pid=7, name=python3, what it says"
RECOVERY = "GPU recovery action changed from 0x{0} ({1}) to 0x{2} ({3})"


def lines(*xids: int, pci: str = "0008:01:00", text: str = TEXT) -> str:
    return "".join(f"1796090588.5 gb1 kernel: {LINE.format(pci=pci, xid=xid, text=text)}" for xid in xids)


@pytest.mark.parametrize(("before", "wanted"), [
    ("1796090588.123456 gb1 kernel: ", "2026-12-01T02:03:08Z"),
    ("[Sun Feb 23 16:24:18 2025] ", "Sun Feb 23 16:24:18 2025"),
    ("2026-12-01T02:03:08,123456+00:00 ", "2026-12-01T02:03:08,123456+00:00"),
    ("[   12.345678] ", None), ("4,3973,227996636,-;", None), ("", None),
])
def test_times(before: str, wanted: str | None) -> None:
    found = xid_history.events(before + LINE.format(pci="0008:01:00", xid=79, text=TEXT))
    assert [(one.pci, one.xid, one.time, one.text) for one in found] == [("0008:01:00.0", 79, wanted, TEXT)]


@pytest.mark.parametrize("line", [
    "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal\n",
    "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing\n",
    "NVRM: Xid (PCI:...): 79, GPU has fallen off the bus.\n", "NVRM: Xid (PCI:0000:66:00): abc, pid=2280636\n",
    "NVRM: loading NVIDIA UNIX Open Kernel Module for aarch64  580.126.09\n"])
def test_other_lines(line: str) -> None:
    assert xid_history.events(line) == ()


def test_a_mig_instance_stands_behind_the_address() -> None:
    assert xid_history.events("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7, Contained\n")[0].pci == "0000:01:00.0"


def test_history_counts_by_gpu_and_number() -> None:
    found = xid_history.history(xid_history.events(lines(119, 119, 13) + lines(119, pci="0009:01:00")))
    assert [(one["pci"], one["xid"], one["count"], one["action"]) for one in found] == [
        ("0008:01:00.0", 119, 2, "reset"), ("0008:01:00.0", 13, 1, "restart"), ("0009:01:00.0", 119, 1, "reset")]
    assert found[0]["meaning"] == "GSP RPC timeout" and found[0]["source"]


@pytest.mark.parametrize(("xid", "hint"), [
    (48, "drain the node and reset the GPU"), (79, "drain the node and power it off and on"),
    (144, "drain the node; check power, board and cabling"), (999, "look it up in NVIDIA's Xid catalogue"),
    # The application's, informational, or a detail of another one: history, no finding.
    (13, None), (31, None), (94, None), (63, None), (121, None), (162, None), (171, None),
])
def test_findings(xid: int, hint: str | None) -> None:
    found = xid_history.findings(xid_history.history(xid_history.events(lines(xid))))
    assert [one.hint for one in found] == ([hint] if hint else [])


@pytest.mark.parametrize(("texts", "action"), [
    ([RECOVERY.format(0, "None", 2, "Node Reboot Required")], "Node Reboot Required"),
    ([RECOVERY.format(0, "None", 1, "GPU Reset Required"), RECOVERY.format(1, "GPU Reset Required", 0, "None")], None),
    (["in other words"], "read it"),
])
def test_the_recovery_action_is_read(texts: list[str], action: str | None) -> None:
    """The last one counts."""
    found = xid_history.findings(xid_history.history(xid_history.events("".join(
        lines(154, text=text) for text in texts))))
    assert [one.hint for one in found] == ([f"drain the node, then: {action}"] if action else [])
