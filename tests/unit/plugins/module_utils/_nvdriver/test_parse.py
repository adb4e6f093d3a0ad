# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver import parse


def test_madison() -> None:
    text = (" nvidia-utils-580 | 580.159.04-1ubuntu1 | file:/srv/cuda  Packages\n"
            " nvidia-utils-580 | 580.126.09-1ubuntu1 | file:/srv/cuda  Packages\n"
            " nvidia-utils-580 | 580.159.04-1ubuntu1 | file:/srv/mirror  Packages\n"
            " nvidia-utils-580 | 580.178.04-1 | file:/srv/mirror main Sources\n")
    assert parse.madison(text) == {"nvidia-utils-580": ("580.159.04-1ubuntu1", "580.126.09-1ubuntu1")}
    assert parse.madison("") == {}
    with pytest.raises(ValueError, match="no three fields"):
        parse.madison("N: Unable to locate package x\n")


def test_repoquery_newest_first() -> None:
    assert parse.repoquery("nvidia-open\t3:580.126.09-1.el9\nnvidia-open\t3:580.159.04-1.el9\n\n") == {
        "nvidia-open": ("3:580.159.04-1.el9", "3:580.126.09-1.el9")}
    with pytest.raises(ValueError, match="no tab"):
        parse.repoquery("Error: no such repository\n")


def test_rpm_by_both_names() -> None:
    text = "package dkms is not installed\nkernel-devel\tkernel-devel-5.14.0-427.el9.x86_64\t5.14.0\n"
    assert [one.name for one in parse.rpm(text)] == ["kernel-devel", "kernel-devel-5.14.0-427.el9.x86_64"]
    with pytest.raises(ValueError, match="1 fields, not 3"):
        parse.rpm("error: rpmdb\n")


def test_locks() -> None:
    text = ("# Added locks on Tue Dec  1\nkmod-nvidia-open-dkms-3:580.159.04-1.el9.*\n"
            "!nvidia-driver-3:580.178.04-1.el9.*\nnonsense\n")
    assert parse.locks(text) == {"kmod-nvidia-open-dkms"}


def test_module_stream() -> None:
    text = "[nvidia-driver]\nname=nvidia-driver\nstream=580-open\nprofiles=\nstate={}\n"
    assert parse.module_stream(text.format("enabled")) == "580-open"
    assert parse.module_stream(text.format("disabled")) is None
    assert parse.module_stream("") is None


@pytest.mark.parametrize(("text", "names"), [
    ('{"by": "x", "held": ["a", 1]}', {"a"}), ('{"held": "a"}', set()), ("[]", set()), ("", set()), ("{", set())])
def test_our_holds(text: str, names: set[str]) -> None:
    assert parse.our_holds(text) == names


def test_kernel_module() -> None:
    text = "filename: /lib/modules/6.8/updates/dkms/nvidia.ko\nversion: 580.159.04\nlicense: Dual MIT/GPL\n"
    found = parse.kernel_module(text)
    assert (found.version, found.flavour) == ("580.159.04", "open")
    with pytest.raises(ValueError, match="no filename"):
        parse.kernel_module("nothing\n")


def test_page_size() -> None:
    assert parse.page_size("65536\n") == 65536
    with pytest.raises(ValueError, match="invalid literal"):
        parse.page_size("undefined\n")
