# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack import parse
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack.model import Build, Os

from tests.unit.plugins.stack_node import KERNEL, RHEL, UBUNTU, inbox_modinfo, ofed_modinfo

SAMPLES = Path(__file__).resolve().parents[5].parent / "shared" / "samples"
DKMS_NEW = """\
Deprecated feature: REMAKE_INITRD (/var/lib/dkms/knem/1.1.4/source/dkms.conf)
mlnx-ofed-kernel/25.10.OFED.25.10.1.7.1.1, 6.8.0-31-generic, x86_64: installed
mlnx-ofed-kernel/25.10.OFED.25.10.1.7.1.1, 6.8.0-40-generic, aarch64: built
nvidia/580.126.16, 6.8.0-31-generic, x86_64: installed (WARNING! Diff between built and installed module!)
iser/25.10: added
"""
DKMS_OLD = """\
iser, 5.4, 5.4.0-125-generic, x86_64: installed
knem, 1.1.4.90mlnx1, 5.4.0-125-generic, x86_64: installed (original_module exists)
srp, 5.4: added
"""


def test_dkms_in_the_new_layout() -> None:
    assert parse.dkms(DKMS_NEW) == (
        Build("mlnx-ofed-kernel", "25.10.OFED.25.10.1.7.1.1", "6.8.0-31-generic", "installed"),
        Build("mlnx-ofed-kernel", "25.10.OFED.25.10.1.7.1.1", "6.8.0-40-generic", "built"),
        Build("nvidia", "580.126.16", "6.8.0-31-generic", "installed",
              "WARNING! Diff between built and installed module!"),
        Build("iser", "25.10", None, "added"))


def test_dkms_in_the_old_layout() -> None:
    assert parse.dkms(DKMS_OLD) == (
        Build("iser", "5.4", "5.4.0-125-generic", "installed"),
        Build("knem", "1.1.4.90mlnx1", "5.4.0-125-generic", "installed", "original_module exists"),
        Build("srp", "5.4", None, "added"))
    assert parse.dkms("\n") == ()


@pytest.mark.parametrize("text", ["Error! Could not locate dkms.conf file.", "garbage", "a/b, c: installed", "\x00"])
def test_dkms_garbage(text: str) -> None:
    with pytest.raises(ValueError, match="not a line of dkms status"):
        parse.dkms(text)


@pytest.mark.parametrize(("text", "want"), [
    (UBUNTU, Os("ubuntu", "24.04", "noble", "Debian")), (RHEL, Os("rhel", "9.4", "", "RedHat")),
    ("ID=debian\n", Os("debian", family="Debian")), ('ID="rocky"\nID_LIKE="rhel centos fedora"\n',
                                                      Os("rocky", family="RedHat")),
    ("# a comment\nID=gentoo\n", Os("gentoo", family="gentoo")), ("ID=mine\nID_LIKE='ubuntu'\n",
                                                                  Os("mine", family="Debian")),
])
def test_os_release(text: str, want: Os) -> None:
    assert parse.os_release(text) == want


@pytest.mark.parametrize("text", ["", "NAME=x\n", 'ID="unclosed\n'])
def test_os_release_garbage(text: str) -> None:
    with pytest.raises(ValueError, match=r"no ID|[Nn]o closing"):
        parse.os_release(text)


def test_dpkg() -> None:
    text = "rdma-core\tinstalled\t50.0-2\nperftest\tnot-installed\t\nmstflint\tconfig-files\t4.26\n"
    assert parse.dpkg(text) == {"rdma-core": "50.0-2"}
    with pytest.raises(ValueError, match="3 fields"):
        parse.dpkg("dpkg-query: error\n")


def test_rpm() -> None:
    assert parse.rpm("rdma-core\t51.0-1.el9\npackage perftest is not installed\n") == {"rdma-core": "51.0-1.el9"}
    assert parse.rpm("package perftest is not installed\n") == {}
    with pytest.raises(ValueError, match="2 fields"):
        parse.rpm("error: rpmdb open failed\n")


def test_modinfo() -> None:
    inbox, ofed = parse.modinfo(inbox_modinfo(KERNEL)), parse.modinfo(ofed_modinfo(KERNEL))
    assert (inbox.kind, inbox.version) == ("inbox", None)
    assert (ofed.kind, ofed.version, ofed.filename) == (
        "ofed", "25.10-1.7.1", f"/lib/modules/{KERNEL}/updates/dkms/mlx5_core.ko")
    with pytest.raises(ValueError, match="no filename"):
        parse.modinfo("what?\n")


@pytest.mark.parametrize(("text", "want"), [
    ("SecureBoot enabled\n", True), ("SecureBoot disabled\nPlatform is in Setup Mode\n", False), ("", None),
    ("SecureBoot", None), ("This system doesn't support Secure Boot\n", None),
])
def test_secure_boot(text: str, want: bool | None) -> None:
    assert parse.secure_boot(text) is want


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="skipped: no folder of field samples beside the checkout")
def test_field_samples() -> None:
    def sample(name: str) -> str:
        return (SAMPLES / f"{name}.txt").read_text(encoding="utf-8")

    assert [(build.name, build.kernel, build.state) for build in parse.dkms(sample("dkms_status-1"))] == [
        ("mlnx-ofed-kernel", "5.15.0-170-generic", "installed"), ("nvidia", "5.15.0-170-generic", "installed")]
    assert [build.name for build in parse.dkms(sample("dkms_status-2"))] == ["iser", "isert", "kernel-mft-dkms", "knem"]
    assert {build.state for build in parse.dkms(sample("dkms_status-2"))} == {"installed"}
    ofed, inbox = parse.modinfo(sample("modinfo_mlx5-1")), parse.modinfo(sample("modinfo_mlx5-2"))
    assert (ofed.kind, ofed.version, inbox.kind, inbox.version) == ("ofed", "24.10-2.1.8", "inbox", None)
