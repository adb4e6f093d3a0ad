# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.model import Step

from tests.unit.plugins.driver_node import KERNEL, NEXT, RHEL, VERSION, bare, settled
from tests.unit.plugins.fake import failed, ok
from tests.unit.plugins.holders import process, slurm_step


def test_a_settled_node(tmp_path: Path) -> None:
    node = settled(tmp_path)
    found = io.gather(node.machine(), node.request())
    assert (found.os.id, found.architecture, found.kernel, found.next_kernel) == ("ubuntu", "x86_64", KERNEL, KERNEL)
    assert (found.driver.loaded, found.on_disk().version, found.driver.userspace) == (VERSION, VERSION, VERSION)
    assert (found.driven, found.users, found.on_disk(NEXT).version) == (4, ("nvidia_uvm",), None)
    assert found.our_holds == {"libnvidia-compute-580", "nvidia-dkms-580-open", "nvidia-utils-580"}
    assert found.images[KERNEL] >= found.options_file.changed_at > 0
    assert found.problems == ()
    # What is complete needs no repository.
    assert found.available == {} and not node.ran("apt-cache")


def test_packages_with_other_names_are_found(tmp_path: Path) -> None:
    node = settled(tmp_path)
    found = io.gather(node.machine(), node.request())
    assert {"dkms", f"linux-headers-{KERNEL}"} <= {one.name for one in found.packages}
    del node.installed["dkms"]
    found = io.gather(node.machine(), node.request())
    assert found.package("dkms") is None and found.problems == ()


def test_dpkg_in_trouble_is_a_problem(tmp_path: Path) -> None:
    node = bare(tmp_path)
    node.override[("dpkg-query",)] = lambda call: failed(2, "dpkg-query: error: failed to open package info file")
    assert io.gather(node.machine(), node.request()).problems[0].object.startswith("dpkg-query")


def test_a_repository_that_does_not_answer(tmp_path: Path) -> None:
    node = bare(tmp_path)
    node.override[("apt-cache",)] = lambda call: Result((), "timeout")
    assert io.gather(node.machine(), node.request()).problems[0].object.startswith("apt-cache madison")


def test_locks_of_dnf(tmp_path: Path) -> None:
    node = bare(tmp_path, RHEL, "dnf")
    node.install()
    node.do_dnf(("dnf", "module", "enable", "nvidia-driver:580-open"))
    node.do_dnf(("dnf", "versionlock", "add", "nvidia-driver-cuda"))
    found = io.gather(node.machine(), node.request())
    assert [one.name for one in found.packages if one.held] == ["nvidia-driver-cuda"]
    assert found.enabled_stream == "580-open"
    assert found.package(f"kernel-devel-{KERNEL}") is not None
    assert list(found.images) == [KERNEL]


def test_the_size_of_pages_is_asked_only_where_a_row_needs_it(tmp_path: Path) -> None:
    node = bare(tmp_path)
    assert io.gather(node.machine(), node.request()).page_size_bytes == 4096
    node.calls.clear()
    assert io.gather(node.machine(), node.request(known_bad=[])).page_size_bytes is None
    assert not node.ran("getconf")


def test_unmanaged_no_repository_is_asked(tmp_path: Path) -> None:
    node = bare(tmp_path)
    io.gather(node.machine(), node.request(manage=False))
    assert not node.ran("apt-cache")


def test_a_broken_module_file(tmp_path: Path) -> None:
    node = bare(tmp_path)
    node.override[("modinfo", "-k")] = lambda call: ok("nothing\n")
    assert any("modinfo -k" in one.object for one in io.gather(node.machine(), node.request()).problems)


def test_use(tmp_path: Path) -> None:
    node = settled(tmp_path)
    slurm_step(tmp_path, 10, "sleep")
    slurm_step(tmp_path, 11, "python3", "/dev/nvidia0", job=7)
    process(tmp_path, 12, "top")
    found = io.use(node.machine())
    assert [one.pid for one in found.holders] == [11]
    assert found.steps == ("Slurm job 4242 step 0 (pid 10 sleep)",)
    assert found.unseen == 0


@pytest.mark.parametrize("path", ["/etc/modprobe.d/aidc-nvidia.conf"])
def test_a_file_is_written_whole(tmp_path: Path, path: str) -> None:
    node = bare(tmp_path)
    assert io.apply(node.machine(), Step(("write", path), "", text="a\n")).state == "ok"
    written = tmp_path / path.lstrip("/")
    assert (written.read_text(encoding="ascii"), written.stat().st_mode & 0o777) == ("a\n", 0o644)
