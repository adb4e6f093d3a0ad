# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover.classify import classify, gpu_text

from tests.unit.plugins.module_utils._discover.case import TRAY_GPUS, Results, classes, epyc, l40s, tray


def name_of(results: Results) -> str | None:
    verdict = classify(results.host(), classes())
    return verdict.node_class.name if verdict.node_class else None


def test_the_three_classes() -> None:
    for results, name in ((tray(), "gb200"), (l40s(), "l40s"), (epyc(), "epyc9754")):
        verdict = classify(results.host(), classes())
        assert verdict.node_class is not None and verdict.node_class.name == name
        assert verdict.findings == ()


def test_another_architecture_is_a_difference_and_no_doubt() -> None:
    """The lab's trays are x86-64."""
    results = tray()
    results.info["architecture"] = "x86_64"
    verdict = classify(results.host(), classes())
    assert verdict.node_class is not None and verdict.node_class.name == "gb200"
    assert [(one.object, one.got, one.wanted) for one in verdict.findings] == [("architecture", "x86_64", "aarch64")]


def test_a_gpu_less() -> None:
    results = tray()
    results.info["gpus"].pop()
    verdict = classify(results.host(), classes())
    assert verdict.node_class is not None
    assert [(one.object, one.got, one.wanted) for one in verdict.findings] == [
        ("GPUs", "3: 3 x GB200 (10de:2941)", "4")]


def test_a_card_of_another_kind_among_them() -> None:
    results = l40s()
    results.info["gpus"][2].update(pci_id="10de:26b5", name="L40")
    verdict = classify(results.host(), classes())
    assert verdict.node_class is not None and verdict.node_class.name == "l40s"
    assert verdict.findings[0].got == "3 x L40S (10de:26b9), 1 x L40 (10de:26b5)"


def test_an_unknown_gpu_is_an_unknown_host() -> None:
    results = tray()
    for gpu in results.info["gpus"]:
        gpu.update(pci_id="10de:2330", name="H100 SXM")
    verdict = classify(results.host(), classes())
    assert verdict.node_class is None
    assert (verdict.findings[0].object, verdict.findings[0].got) == (f"GPU {TRAY_GPUS[0]}", "4 x H100 SXM (10de:2330)")
    assert "gb200 10de:2941, l40s 10de:26b9" in verdict.findings[0].wanted


def test_without_gpus_architecture_and_cards_decide() -> None:
    assert name_of(epyc(cores=2)) == "epyc9754"
    arm = epyc()
    arm.info["architecture"] = "aarch64"
    assert name_of(arm) is None
    bare = epyc(cores=2)
    bare.lose_nic(0)
    assert name_of(bare) is None, "a login host is of no class"
    lost = epyc(cores=128)
    lost.lose_nic(0)
    assert name_of(lost) == "epyc9754", "its cores speak for it"


def test_a_gpu_node_that_lost_all_its_gpus_is_no_epyc() -> None:
    results = l40s()
    results.info["gpus"], results.info["cpu"] = [], {"cores": 128}
    verdict = classify(results.host(), classes())
    assert verdict.node_class is None and "NICs: 15b3:1021, 15b3:1021" in verdict.findings[0].got


def test_two_classes_that_fit_alike() -> None:
    twin = [*classes(), dataclasses.replace(classes()[1], name="gb200b")]
    verdict = classify(tray().host(), twin)
    assert verdict.node_class is None and verdict.findings[0].got == "gb200 and gb200b"
    without = [dataclasses.replace(one, name=f"{one.name}{number}") for number in (1, 2) for one in classes()]
    assert classify(epyc().host(), without).node_class is None
    other = [*classes(), dataclasses.replace(classes()[1], name="gb200x", gpu_count=8)]
    verdict = classify(tray().host(), other)
    assert verdict.node_class is not None and verdict.node_class.name == "gb200", "the count tells them apart"


def test_gpu_text() -> None:
    assert gpu_text(epyc().host()) == "none"
