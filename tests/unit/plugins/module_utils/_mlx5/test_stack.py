# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import stack

SAMPLES = Path(__file__).resolve().parents[5].parent / "shared" / "samples"
OFED = {"filename": "/lib/modules/6.1.0/updates/dkms/mlx5_core.ko", "version": "24.10-2.1.8", "srcversion": "A"}
INBOX = {"filename": "/lib/modules/6.1.0/kernel/drivers/net/mlx5_core.ko.xz", "intree": "Y", "srcversion": "B"}


@pytest.mark.parametrize(("info", "want"), [
    (OFED, "ofed"), (INBOX, "inbox"), ({"filename": "/lib/modules/5.14.0/extra/mlnx-ofa_kernel/mlx5_core.ko"}, "ofed"),
    ({"filename": "/lib/modules/5.14.0/weak-updates/mlx5_core.ko"}, "ofed"), ({"filename": "(builtin)"}, "inbox"),
    ({}, None), ({"filename": "/somewhere/mlx5_core.ko"}, None),
])
def test_whose_the_module_on_disk_is(info: dict[str, str], want: str | None) -> None:
    assert stack.installed(info) == want


def test_the_loaded_module_decides() -> None:
    ofed = stack.judge(["mlx5_core", "mlx_compat"], "24.10-2.1.8", "A", True, OFED, "OFED-internal-24.10-2.1.8")
    assert (ofed.backend, ofed.installed, ofed.version, ofed.findings) == ("ofed", "ofed", "24.10-2.1.8", ())
    assert stack.judge(["mlx5_core"], None, "B", True, INBOX, None).backend == "inbox"
    # Built into the kernel: no line in /proc/modules.
    assert stack.judge([], None, None, True, {}, None).backend == "inbox"
    assert stack.judge([], None, None, False, INBOX, None).backend is None


def test_a_package_whose_driver_is_not_loaded() -> None:
    found = stack.judge(["mlx5_core"], None, "B", True, OFED, "OFED-internal-25.10-1.7.1")
    assert [problem.got for problem in found.findings] == ["the kernel's own driver loaded", "srcversion B loaded"]
    assert (found.backend, found.installed, found.package) == ("inbox", "ofed", "OFED-internal-25.10-1.7.1")
    assert set(found.as_data()) == {"backend", "version", "installed", "installed_version", "package"}


@pytest.mark.parametrize("text", ["", "\n", "command not found", "garbage\x00"])
def test_no_package(text: str) -> None:
    assert stack.ofed_package(text) is None


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="skipped: no folder of field samples beside the checkout")
def test_field_samples() -> None:
    def sample(name: str) -> str:
        return (SAMPLES / f"{name}.txt").read_text(encoding="utf-8")

    assert stack.ofed_package(sample("ofed_info-1")) == "OFED-internal-25.10-1.7.1"
    assert stack.ofed_package(sample("ofed_info-2")) == "MLNX_OFED_LINUX-24.10-1.1.4.0"
    ofed, inbox = stack.modinfo(sample("modinfo_mlx5-1")), stack.modinfo(sample("modinfo_mlx5-2"))
    assert (stack.installed(ofed), ofed["version"]) == ("ofed", "24.10-2.1.8")
    assert (stack.installed(inbox), inbox.get("version")) == ("inbox", None)
