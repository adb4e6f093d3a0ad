# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each rule of the reference, each class, and that a degraded machine cannot lower its own limit."""
from __future__ import annotations

import dataclasses
import inspect
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils._gate import bounds, hardware, reference
from plugins.module_utils._gate.hardware import COLLECTIVES, Hardware, Question, compare_live
from plugins.module_utils._gate.model import Run
from plugins.module_utils._gate.reference import Bands, Baseline, OperatorNumber, mad, outliers, question_of, resolve
from plugins.module_utils._gate.reference_data import TABLE

H100 = Hardware("h100", "H100", 8, "nvlink", 8, 400)
A100 = Hardware("a100", "A100", 8, "nvlink", 8, 200)
GB200 = Hardware("gb200", "GB200", 4, "nvlink", 4, 400, domain_nodes=18)
L40S = Hardware("l40s", "L40S", 4, "pcie", 2, 200)
CPU = Hardware("epyc9754", nics=1, nic_gbit=100)


def number(machine: Hardware, question: Question, **more: object) -> tuple[str, float]:
    found = resolve(machine, question, **more)  # type: ignore[arg-type]
    assert found.limit is not None, found.reason
    return found.limit.rule, found.limit.busbw_gbps


@pytest.mark.parametrize(("machine", "question", "rule", "value"), [
    # Facts 3.1: 400G gives 49.0 GB/s at most at MTU 4096.
    (dataclasses.replace(H100, gpu="B200"), Question(nodes=4), "model-ring", 392.16),
    # NVLink's ring is the lower one: 366 seen on four nodes (nccl-tests#309).
    (H100, Question(nodes=4), "model-ring", 365),
    (H100, Question(nodes=2), "model-ring", 365),
    (H100, Question(nodes=2, algorithm="default"), "table", 471),
    (H100, Question(nodes=8, algorithm="default"), "table", 386),
    (H100, Question(nodes=8), "model-ring", 365),
    (H100, Question(nodes=1), "table", 365),
    (H100, Question(nodes=1, algorithm="default"), "table", 480),
    (H100, Question(nodes=4, rails=1), "model-ring", 49.02),
    (A100, Question(nodes=1, algorithm="default"), "table", 230),
    (A100, Question(nodes=2), "table", 186),
    (A100, Question("all_gather", 1), "model-intra", 230),
    # Facts 3.1: with MNNVL off 4 x 400G a tray, 190-197; the domain 680 by ring, 847 by default.
    (GB200, Question(nodes=18), "model-ring", 196.08),
    (GB200, Question(nodes=18, mnnvl=True), "table", 680),
    (GB200, Question(nodes=18, mnnvl=True, algorithm="default"), "table", 847),
    (GB200, Question(nodes=4, mnnvl=True), "model-intra", 680),
    (GB200, Question(nodes=36, mnnvl=True, algorithm="default"), "table", 820),
    (GB200, Question(nodes=1, algorithm="default"), "model-intra", 680),
    (GB200, Question("alltoall", 2), "model-ring", 49.02 * 7 / 4),
    # One 400G NIC for each GPU: about 48 GB/s a GPU, times N/(N-1).
    (H100, Question("alltoall", 4), "model-ring", 49.02 * 31 / 24),
    (H100, Question("sendrecv", 2, rails=1), "model-ring", 49.02),
    (L40S, Question(nodes=4, rails=1), "model-ring", 24.51),
    (CPU, Question("ib_write_bw", 2), "model-perftest", 12.255),
])
def test_rules(machine: Hardware, question: Question, rule: str, value: float) -> None:
    found, busbw = number(machine, question)
    assert found == rule
    assert busbw == pytest.approx(value, rel=1e-3)


def test_mtu_of_the_class_sets_the_payload() -> None:
    small = dataclasses.replace(H100, mtu_bytes=1024)
    assert number(small, Question(nodes=4, rails=1))[1] == pytest.approx(46.3, abs=0.05)


def test_a_degraded_machine_is_a_finding_and_keeps_its_limit() -> None:
    rates = {f"mlx5_{i}": 400.0 for i in range(7)} | {"mlx5_7": 200.0}
    findings = compare_live(H100, rates, {"mlx5_0": 1024}, 7)
    assert [one.what for one in findings] == ["gpus", "rate of mlx5_7", "MTU of mlx5_0"]
    assert compare_live(H100, dict(list(rates.items())[:6]))[0].what == "rails"
    assert compare_live(H100, {f"mlx5_{i}": 400.0 for i in range(8)}, {"mlx5_0": 4096}, 8) == []
    # There is no way in: nothing live is a parameter.
    assert list(inspect.signature(resolve).parameters) == [
        "hardware", "question", "operator", "baselines", "fleet", "bands"]
    assert number(H100, Question(nodes=4), fleet=[200.0] * 20) == number(H100, Question(nodes=4))


def test_operator_goes_first_and_the_most_exact_number_counts() -> None:
    numbers = [OperatorNumber(300), OperatorNumber(330, "all_reduce", nodes=(2, 64)),
               OperatorNumber(340, "all_reduce", nodes=(4, 4), why="measured with the vendor"),
               OperatorNumber(40, rails=1), OperatorNumber(1, "alltoall"), OperatorNumber(2, mnnvl=True)]
    found = resolve(H100, Question(nodes=4), numbers, [Baseline(350, "all_reduce", 4)])
    assert found.limit is not None
    assert (found.limit.rule, found.limit.busbw_gbps, found.reason) == ("operator", 340, "measured with the vendor")
    assert number(H100, Question(nodes=8), operator=numbers)[1] == 330
    assert number(H100, Question(nodes=4, rails=1), operator=numbers[:1] + numbers[3:])[1] == 40
    assert number(H100, Question("broadcast", 4), operator=numbers)[1] == 300


def test_baseline_is_what_l40s_has() -> None:
    question = Question(nodes=4)
    assert resolve(L40S, question).limit is None
    assert "baseline" in resolve(L40S, question).reason
    assert number(L40S, question, baselines=[Baseline(44, "all_reduce", 4, when="2026")]) == ("baseline", 44)
    assert resolve(L40S, question, baselines=[Baseline(44, "all_reduce", 8)]).limit is None
    assert resolve(L40S, Question(nodes=1, algorithm="default")).limit is None


def test_fleet_median_finds_outliers_only() -> None:
    found = resolve(L40S, Question(nodes=4), fleet=[24, 25, 24.5, 24.8, 11])
    assert found.limit is not None
    assert (found.limit.rule, found.limit.busbw_gbps, found.outliers_only) == ("fleet-median", 24.5, True)
    assert found.limit.inputs["outliers_only"] is True
    assert found.limit.inputs["fleet_mad"] == pytest.approx(0.5)
    assert resolve(L40S, Question(nodes=4), fleet=[24, 25, 0, 24]).limit is None
    assert not resolve(H100, Question(nodes=4)).outliers_only


def test_outliers() -> None:
    good = {f"n{i}": 24 + 0.1 * i for i in range(8)}
    assert outliers(good) == []
    assert outliers({**good, "bad": 20.0}) == ["bad"]
    assert outliers({"a": 1.0, "b": 24.0}) == []
    assert mad([1.0, 2.0, 9.0]) == 1.0


def test_answer_is_json_with_every_input() -> None:
    for question in (Question(nodes=4), Question(nodes=1, algorithm="default")):
        found = resolve(H100, question, bands={"": Bands(0.95, 0.85)})
        assert found.limit is not None
        text = json.dumps(found.to_dict(), allow_nan=False)
        assert '"nic_gbit": 400' in text
        assert (found.limit.pass_fraction, found.limit.fail_fraction) == (0.95, 0.85)


def test_bands_by_stage() -> None:
    bands = {"verify": Bands(0.92, 0.82)}
    found = resolve(H100, Question(nodes=4, stage="verify"), bands=bands).limit
    other = resolve(H100, Question(nodes=4, stage="pair"), bands=bands).limit
    assert found is not None and other is not None
    assert (found.pass_fraction, other.pass_fraction, other.fail_fraction) == (0.92, 0.90, 0.80)
    for wrong in ((0.8, 0.9), (1.2, 0.8), (0.9, 0.0)):
        with pytest.raises(ValueError, match="wanted 0 < fail"):
            Bands(*wrong)


@pytest.mark.parametrize(("machine", "question", "text"), [
    (H100, Question("hypercube", 1), "got collective 'hypercube'"),
    (H100, Question(nodes=0), "got 0 nodes"),
    (H100, Question(nodes=2, rails=9), "got 9 rails"),
    (H100, Question(nodes=2, mnnvl=True), "no NVLink between nodes"),
    (CPU, Question(nodes=2), "judged by perftest"),
    (CPU, Question("ib_write_bw", 3), "between two nodes"),
    (dataclasses.replace(H100, gpus_per_node=1), Question(nodes=1), "one rank"),
    (Hardware("x"), Question("ib_write_bw", 2), "no number"),
])
def test_questions_without_an_answer(machine: Hardware, question: Question, text: str) -> None:
    found = resolve(machine, question)
    assert found.limit is None
    assert text in found.reason


# What was seen on good machines (facts 3.2, samples): never implausible.
@pytest.mark.parametrize(("machine", "question", "seen"), [
    (H100, Question(nodes=1, algorithm="default"), 480), (H100, Question(nodes=2, algorithm="default"), 487),
    (H100, Question(nodes=8, algorithm="default"), 386), (A100, Question(nodes=1, algorithm="default"), 235),
    (dataclasses.replace(H100, gpu="B200"), Question(nodes=1, algorithm="default"), 838),
    (GB200, Question(nodes=18, mnnvl=True, algorithm="default"), 850),
    (GB200, Question(nodes=36, mnnvl=True, algorithm="default"), 820),
    (GB200, Question(nodes=2, algorithm="default"), 234),
    (dataclasses.replace(L40S, nic_gbit=400), Question(nodes=2), 50),
    (dataclasses.replace(CPU, nic_gbit=400), Question("ib_write_bw", 2), 399.9 / 8),
])
def test_good_figures_are_plausible(machine: Hardware, question: Question, seen: float) -> None:
    upper, _ = bounds.upper_bound(machine, question)
    assert upper is not None and seen < upper


@pytest.mark.parametrize(("machine", "question", "wrong"), [
    # 900 raw cannot be had from 450; four NICs cannot carry eight; bits taken for bytes.
    (H100, Question(nodes=1), 480), (H100, Question(nodes=4), 420), (GB200, Question(nodes=18), 394),
    (GB200, Question(nodes=18, mnnvl=True), 950), (CPU, Question("ib_write_bw", 2), 98),
    (H100, Question(nodes=4, rails=1), 98),
])
def test_broken_figures_are_not(machine: Hardware, question: Question, wrong: float) -> None:
    upper, _ = bounds.upper_bound(machine, question)
    assert upper is not None and wrong > upper


def test_bound_is_absent_where_nothing_is_known() -> None:
    unknown = Hardware("x", "NEW", 8, "nvlink")
    assert bounds.upper_bound(unknown, Question(nodes=1))[0] is None
    assert bounds.upper_bound(unknown, Question(nodes=2))[0] is None
    assert bounds.upper_bound(Hardware("x"), Question("ib_write_bw", 2))[0] is None
    assert bounds.upper_bound(dataclasses.replace(unknown, intra_raw_gbps=100), Question(nodes=1))[0] == 102
    reduced = dataclasses.replace(GB200, in_network_reduction=True)
    question = Question(nodes=8, algorithm="default")
    assert bounds.upper_bound(reduced, question)[0] > bounds.upper_bound(GB200, question)[0]  # type: ignore[operator]


def test_a_number_beyond_physics_is_refused() -> None:
    found = resolve(H100, Question(nodes=4), [OperatorNumber(900)])
    assert found.limit is None
    assert "more than can be" in found.reason


def test_table_rows_are_below_their_bound_and_have_a_source() -> None:
    for row in TABLE:
        machine = Hardware("t", row.gpu, row.gpus_per_node, "nvlink", row.nics, row.nic_gbit, transport=row.transport,
                           domain_nodes=18 if row.mnnvl else 1)
        question = Question(row.collective, row.nodes[0], row.algorithm, mnnvl=row.mnnvl)  # type: ignore[arg-type]
        assert number(machine, question) == ("table", row.busbw_gbps)
        assert row.source


def test_class_may_know_better_than_the_table() -> None:
    own = Hardware("own", "NEW", 8, "nvlink", 8, 400, intra_ring_gbps=300)
    assert number(own, Question(nodes=1)) == ("model-intra", 300)
    assert number(own, Question(nodes=4)) == ("model-ring", 300)


@pytest.mark.parametrize(("machine", "question", "seen", "text"), [
    (GB200, Question(nodes=18, mnnvl=True), 194, "NVLink between the nodes is off"),
    (H100, Question(nodes=2, algorithm="default"), 471, "judge with RING"),
    (H100, Question(nodes=1, algorithm="default"), 366, "NVLink SHARP was not used"),
    (H100, Question(nodes=4), 343, "7 of 8 NICs"),
])
def test_hints(machine: Hardware, question: Question, seen: float, text: str) -> None:
    assert any(text in hint for hint in bounds.hints(machine, question, seen))


def test_no_hint_for_a_good_figure() -> None:
    assert bounds.hints(H100, Question(nodes=4), 390) == []
    assert bounds.hints(GB200, Question(nodes=18, mnnvl=True), 847) == []


def run(kind: str, nodes: int = 2) -> Run:
    return Run("1", "pair", kind, tuple(f"n{i}" for i in range(nodes)), 1, 1)  # type: ignore[arg-type]


def test_question_of_a_planned_run() -> None:
    assert question_of(run("node", 1), H100) == Question("all_reduce", 1, "default", stage="pair")
    assert question_of(run("pair"), A100) == Question("all_reduce", 2, "ring", stage="pair")
    assert question_of(run("pair"), GB200, True) == Question("all_reduce", 2, "ring", None, True, "pair")
    # 7 of 8 NICs give 343 of 365: a ring would pass it.
    assert question_of(run("pair"), H100) == Question("alltoall", 2, "ring", stage="pair")
    assert question_of(run("rails", 4), H100) == Question("all_reduce", 4, "ring", 1, stage="pair")
    assert question_of(run("alltoall", 4), GB200, True) == Question("alltoall", 4, "ring", None, True, "pair")
    assert question_of(run("pair", 3), CPU) == Question("ib_write_bw", 2, stage="pair")


@settings(max_examples=200, deadline=None)
@given(gpu=st.sampled_from(["A100", "H100", "GB200", "L40S", ""]), gpus=st.integers(0, 8), nics=st.integers(0, 16),
       gbit=st.sampled_from([0, 100, 200, 400, 800]), mtu=st.sampled_from([256, 1024, 4096]), domain=st.integers(1, 18),
       collective=st.sampled_from(COLLECTIVES), nodes=st.integers(1, 600), default=st.booleans(), mnnvl=st.booleans(),
       intra=st.sampled_from(["nvlink", "pcie", "none"]))
def test_any_class_gives_a_sane_limit(gpu: str, gpus: int, nics: int, gbit: int, mtu: int, domain: int, collective: str,
                                      nodes: int, default: bool, mnnvl: bool, intra: str) -> None:
    machine = Hardware("x", gpu, gpus, intra, nics, gbit, mtu, domain_nodes=domain)  # type: ignore[arg-type]
    question = Question(collective, nodes, "default" if default else "ring", mnnvl=mnnvl)
    found = resolve(machine, question)
    json.dumps(found.to_dict(), allow_nan=False)
    if found.limit is None:
        assert found.reason
        return
    assert found.limit.busbw_gbps > 0
    assert found.limit.upper_bound is None or found.limit.upper_bound >= found.limit.busbw_gbps
    bounds.hints(machine, question, found.limit.busbw_gbps)
    # More network never means a lower limit, for the rules that compute.
    if found.limit.rule.startswith("model"):
        richer = resolve(dataclasses.replace(machine, nics=nics + 1), question).limit
        assert richer is None or richer.busbw_gbps >= found.limit.busbw_gbps - 1e-3


def test_modules_stay_pure() -> None:
    for module in (bounds, hardware, reference):
        text = inspect.getsource(module)
        assert "import os" not in text and "open(" not in text and "import time" not in text
