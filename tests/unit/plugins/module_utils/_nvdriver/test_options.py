# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Driver, Setting
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver import options
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.model import OPTIONS_FILE, Node, Request


def test_registry_dwords_are_one_string() -> None:
    merged = options.merge({"NVreg_RegistryDwords": "RMForceStaticBar1=1;", "EnableStreamMemOPs": True},
                           {"PeerMappingOverride": 1, "RMForceDisableIomapWC": False})
    assert merged == {"EnableStreamMemOPs": "1", "RegistryDwords":
                      "PeerMappingOverride=1;RMForceDisableIomapWC=0;RMForceStaticBar1=1;"}
    assert options.merge({}, {}) == {}


def test_a_key_with_two_values() -> None:
    assert [one.object for one in options.conflicts({"RegistryDwords": "A=1;B=2"}, {"A": 1, "B": 3})] == [
        "RegistryDwords B"]
    assert options.conflicts({"NVreg_RegistryDwords": "A=1"}, {"C": 1}) == []


@pytest.mark.parametrize(("name", "value", "bad"), [
    ("CoherentGPUMemoryMode", "driver", False), ("RegistryDwords", "A=0x1;B=2;", False),
    ("Create Imex", "1", True), ("Mode", 'a" x', True), ("Mode", "a b", True), ("Mode", "a#b", True)])
def test_what_modprobe_cannot_be_told(name: str, value: str, bad: bool) -> None:
    assert bool(options.wrong({name: value})) is bad


def test_the_file() -> None:
    assert options.options_text(Request()).splitlines()[1:] == ["blacklist nouveau", "options nouveau modeset=0"]
    text = options.options_text(Request(module_options={"CreateImexChannel0": "1", "RegistryDwords": "A=1;"}))
    assert text.splitlines()[-1] == 'options nvidia NVreg_CreateImexChannel0=1 NVreg_RegistryDwords="A=1;"'
    # Every line is one that modprobe knows, and the header says whose it is.
    assert text.startswith("# Written by aidc.gpu_cluster") and text.endswith("\n")


def test_the_pin_ends_with_the_version() -> None:
    """580.142 is no beginning of 580.142.03."""
    assert "Pin: version 580.142-*\n" in options.pin_text(Request("580.142"))


def test_in_force() -> None:
    request = Request(module_options={"CreateImexChannel0": "1", "RegistryDwords": "A=1;", "Hidden": "1"})
    node = Node(in_force={"CreateImexChannel0": "0", "RegistryDwords": "A=0x1;"})
    assert options.not_in_force(request, node) == ["NVreg_CreateImexChannel0 is 0, wanted 1"]
    assert options.not_in_force(request, Node()) == []


def test_an_option_of_somebody_else() -> None:
    request = Request(module_options={"CreateImexChannel0": "1"})
    other = Setting("CreateImexChannel0", "0", "/etc/modprobe.d/site.conf")
    ours = Setting("CreateImexChannel0", "1", OPTIONS_FILE)
    node = Node(settings=(ours, other), in_force={"CreateImexChannel0": "0"})
    assert options.not_in_force(request, node) == [], "a reload would not help"
    assert [(one.object, one.got) for one in options.findings(request, node)] == [
        ("NVreg_CreateImexChannel0", "0 in /etc/modprobe.d/site.conf")]
    same = Setting("CreateImexChannel0", "0x1", "/etc/modprobe.d/site.conf")
    assert options.findings(request, Node(settings=(same,))) == []


def test_an_option_that_is_none() -> None:
    request = Request(module_options={"PeerMappingOverride": "1"})
    node = Node(driver=Driver(options=frozenset({"RegistryDwords"})))
    assert [one.object for one in options.findings(request, node)] == ["NVreg_PeerMappingOverride"]
    assert options.findings(request, Node()) == [], "without a module nothing is known"
