# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Driver, Holder, Pci, Unit
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver import reload
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.model import (
    KernelModule,
    Node,
    Request,
    Use,
)

LOADED = Driver("580.126.09", "open", True, references=1, users=("nvidia_uvm",))
NODE = Node(kernel="6.8", gpus=(Pci("0000:41:00.0", "10de:26b9"),), driver=LOADED, users=("nvidia_uvm",),
            modules={"6.8": KernelModule("580.159.04", "open")})
REQUEST = Request("580.159.04", board="pcie")


@pytest.mark.parametrize(("node", "words"), [
    (NODE, "580.126.09 is loaded, 580.159.04 is on the disk"),
    (replace(NODE, driver=Driver()), "no driver is loaded"),
    (replace(NODE, driver=replace(LOADED, loaded="580.159.04", flavour="proprietary")), "the proprietary module"),
    (replace(NODE, driver=replace(LOADED, loaded="580.159.04")), None),
    (replace(NODE, gpus=()), None), (replace(NODE, modules={}), None)])
def test_reason(node: Node, words: str | None) -> None:
    found = reload.reason(REQUEST, node)
    assert found is None if words is None else (found or "").startswith(words)


def test_options_that_are_not_in_force_are_a_reason() -> None:
    node = replace(NODE, driver=replace(LOADED, loaded="580.159.04"), in_force={"CreateImexChannel0": "0"})
    request = replace(REQUEST, module_options={"CreateImexChannel0": "1"})
    assert reload.reason(request, node) == "options are not in force: NVreg_CreateImexChannel0 is 0, wanted 1"
    assert reload.reason(request, replace(node, in_force={"CreateImexChannel0": "0x1"})) is None


def test_modules_go_in_their_order_and_come_back() -> None:
    node = replace(NODE, users=("nvidia_uvm", "nvidia_modeset", "nvidia_peermem", "nvidia_drm"))
    commands = [step.command for step in reload.steps(REQUEST, node)]
    assert [one[-1] for one in commands if "-r" in one] == [
        "nvidia_peermem", "nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia"]
    assert [one[1] for one in commands if "-r" not in one] == [
        "nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem"]
    assert reload.steps(REQUEST, replace(NODE, gpus=())) == []


def test_units_are_stopped_only_where_they_run() -> None:
    units = (Unit("nvidia-persistenced.service", "loaded", "active", "enabled"),
             Unit("nvidia-dcgm.service", "loaded", "inactive", "enabled"))
    commands = [step.command for step in reload.steps(REQUEST, replace(NODE, units=units))]
    assert [one for one in commands if one[0] == "systemctl"] == [
        ("systemctl", "stop", "nvidia-persistenced.service"), ("systemctl", "start", "nvidia-persistenced.service")]


def test_a_service_of_a_job_is_a_job() -> None:
    service = Holder(7, "nvidia-persiste", None, ("/dev/nvidia0",), True)
    job = replace(service, job="Slurm job 1 step 0", is_service=False)
    assert reload.deferred(REQUEST, NODE, Use((service,))) == []
    assert [one["holder"] for one in reload.deferred(REQUEST, NODE, Use((job,)))] == [
        "Slurm job 1 step 0 (pid 7 nvidia-persiste)"]


def test_processes_that_nobody_could_look_at() -> None:
    node = replace(NODE, driver=replace(LOADED, references=4))
    found = reload.deferred(REQUEST, node, Use(unseen=2))
    assert found == [{"holder": "3 unknown references",
                      "why": "hold the module nvidia, and 2 processes could not be looked at"}]
    assert reload.deferred(REQUEST, NODE, Use(unseen=2)) == []


def test_nouveau_and_a_driver_that_is_not_loaded() -> None:
    assert reload.deferred(REQUEST, replace(NODE, driver=Driver(nouveau=True)), Use())[0]["holder"] == "nouveau"
    request = replace(REQUEST, disruption_policy="never")
    assert reload.deferred(request, replace(NODE, driver=Driver()), Use()) == [], "nobody is disturbed"
