# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each row of the table fires on its clue, and not on the twin that is like it but legal."""
from __future__ import annotations

import typing as t

import pytest

from plugins.module_utils._gate.cause import Clue, Wanted, causes, of_counters, of_result, of_search
from plugins.module_utils._gate.cause_rules import CAUSE_RULES
from tests.unit.plugins.module_utils._gate.fabric import Fabric

SLOW = Clue("verdict:SLOW", "slow")
NOBODY = Wanted()


def count(name: str, amount: int = 5000, node: str = "n1", device: str = "mlx5_0") -> Clue:
    return Clue(f"counter:{name}", name, node, device, amount)


def error(name: str, node: str = "n1", device: str = "mlx5_0") -> Clue:
    return Clue(f"error:{name}", name, node, device)


def way(name: str) -> Clue:
    return Clue(f"transport:{name}", name)


def found(name: str) -> Clue:
    return Clue(f"convicted:{name}", name, "n1")


Case = tuple[t.Sequence[Clue], Wanted]
# Row -> (what fires it, the twin that must not).
CASES: dict[str, tuple[Case, Case]] = {
    "link-retry": (([error("ib-retry"), count("link_downed")], NOBODY),
                   ([error("ib-retry"), count("link_downed", device="mlx5_1")], NOBODY)),
    "link-down": (([count("link_down_events_phy", 1)], NOBODY),
                  ([count("link_down_events_phy", 1), error("ib-retry")], NOBODY)),
    "link-symbols": (([count("rx_symbol_err_phy", 1)], NOBODY), ([count("rx_corrected_bits_phy", 9)], NOBODY)),
    "icrc": (([count("rx_icrc_encapsulated", 1)], NOBODY), ([count("rx_write_requests")], NOBODY)),
    "loss-timeout": (([count("local_ack_timeout_err", 1)], NOBODY), ([count("duplicate_request")], NOBODY)),
    "loss-sequence": (([count("packet_seq_err", 1)], NOBODY),
                      ([count("out_of_sequence")], Wanted(adaptive_routing=True))),
    "loss-order": (([count("out_of_sequence", 1)], Wanted(adaptive_routing=False)),
                   ([count("out_of_sequence")], Wanted(adaptive_routing=True))),
    "order": (([count("out_of_sequence", 1)], NOBODY), ([count("out_of_sequence")], Wanted(adaptive_routing=True))),
    "discards-lossless": (([count("rx_prio3_buf_discard", 1)], Wanted(pfc=True)),
                          ([count("rx_prio3_buf_discard", 1)], Wanted(pfc=False))),
    "discards": (([count("rx_discards_phy", 1)], Wanted(pfc=False)), ([count("rx_discards_phy", 1)], Wanted(pfc=True))),
    "slow-receiver": (([count("rnr_nak_retry_err", 1)], NOBODY), ([count("rx_read_requests")], NOBODY)),
    "pause-storm": (([count("tx_pause_storm_warning_events", 1)], NOBODY), ([count("tx_prio3_pause")], NOBODY)),
    "pause-sent": (([count("tx_prio3_pause")], NOBODY), ([count("tx_prio3_pause", 10)], NOBODY)),
    "pause-received": (([count("rx_prio3_pause"), SLOW], NOBODY), ([count("rx_prio3_pause")], NOBODY)),
    "pause-global": (([count("rx_global_pause", 1)], Wanted(pfc=True)),
                     ([count("rx_global_pause", 1)], Wanted(pfc=False))),
    "congestion": (([count("rp_cnp_handled"), SLOW], NOBODY), ([count("rp_cnp_handled")], NOBODY)),
    "remote-access": (([count("req_remote_access_errors", 1)], NOBODY), ([count("rx_atomic_requests")], NOBODY)),
    "counter-reset": (([Clue("reset:x", "x")], NOBODY), ([count("x")], NOBODY)),
    "no-verbs": (([way("no-ib-device"), way("socket")], NOBODY), ([way("socket")], NOBODY)),
    "socket": (([way("socket")], NOBODY), ([way("socket")], Wanted(rdma=False))),
    "no-gdr": (([way("no-gdr")], Wanted(gdr=True)), ([way("no-gdr")], Wanted(gdr=False))),
    "hcas-missing": (([way("hcas-missing")], NOBODY), ([], NOBODY)),
    "no-nvls": (([way("no-nvls")], Wanted(nvls=True)), ([way("no-nvls")], Wanted(nvls=False))),
    "mnnvl-off": (([way("mnnvl-off")], Wanted(mnnvl=True)), ([way("mnnvl-off")], Wanted(mnnvl=False))),
    "rail": (([found("rail:slow")], NOBODY), ([found("node:slow")], NOBODY)),
    "node-data": (([found("node:wrong")], NOBODY), ([found("node:crash")], NOBODY)),
    "node-dead": (([found("node:hang")], NOBODY), ([found("node:slow")], NOBODY)),
    "node-slow": (([found("node:slow")], NOBODY), ([found("node:intermittent")], NOBODY)),
    "node-unsteady": (([found("node:intermittent")], NOBODY), ([found("node:slow")], NOBODY)),
    "path-leaves": (([found("path:leaves")], NOBODY), ([found("path:pair")], NOBODY)),
    "path-pair": (([found("path:pair")], NOBODY), ([found("path:leaves")], NOBODY)),
    "fleet": (([Clue("search:fleet-wide", "x")], NOBODY), ([Clue("search:scale", "x")], NOBODY)),
    "scale": (([Clue("search:scale", "x")], NOBODY), ([Clue("search:fleet-wide", "x")], NOBODY)),
}


def test_every_row_has_a_case_a_source_and_words() -> None:
    assert sorted(CASES) == sorted(rule.id for rule in CAUSE_RULES)
    assert all(rule.source and rule.cause and rule.action for rule in CAUSE_RULES)


@pytest.mark.parametrize("name", CASES)
def test_a_row_fires_on_its_clue_and_not_on_the_twin(name: str) -> None:
    (clues, wanted), (twin, legal) = CASES[name]
    assert name in [cause.id for cause in causes(clues, wanted)]
    assert name not in [cause.id for cause in causes(twin, legal)]


def test_counters_that_are_missing_or_went_back_are_no_growth() -> None:
    before = {"n1": {"mlx5_0": {"out_of_sequence": 5, "packet_seq_err": 7, "link_downed": 1}}, "n2": {}}
    after = {"n1": {"mlx5_0": {"out_of_sequence": 5, "packet_seq_err": 2, "rx_prio3_pause": 9, "link_downed": 2}},
             "n3": {"mlx5_0": {"link_downed": 1}}}
    clues = of_counters(before, after)
    assert [clue.key for clue in clues] == ["counter:link_downed", "reset:packet_seq_err"]
    assert clues[0] == Clue("counter:link_downed", "n1 mlx5_0: link_downed +1", "n1", "mlx5_0", 1)


def line(name: str, role: str, state: str = "CRASH") -> dict[str, t.Any]:
    return {"id": name, "role": role, "state": state, "text": f"text of {name}", "line": 3, "host": "n1",
            "hca": "mlx5_0:1", "meaning": f"meaning of {name}", "action": "act", "source": "facts", "count": 2}


def test_followers_are_not_blamed_beside_a_cause() -> None:
    errors = [line("ib-flushed", "follower"), line("ib-retry", "cause")]
    (one,) = causes([], None, errors)
    assert (one.id, one.strength, one.places) == ("error-ib-retry", "likely", [{"node": "n1", "device": "mlx5_0"}])
    assert one.evidence == ["line 3: text of ib-retry (2 times)"]
    assert [cause.strength for cause in causes([], None, errors[:1])] == ["hint"]
    assert causes([], None, [line("gdr-disabled", "note", "")]) == []


def test_the_way_of_the_data_is_read_from_a_stored_result() -> None:
    transport = {"networks": {"IB": 4}, "host_memory_channels": 2, "gdr_channels": 6, "hcas": {"mlx5_0:1": "RoCE"},
                 "gdr_hcas": {"mlx5_1": False}, "nvls": False, "mnnvl": False}
    keys = [clue.key for clue in of_result({"transport": transport}, Wanted(hcas=2))]
    assert keys == ["transport:no-gdr", "transport:no-gdr", "transport:no-nvls", "transport:mnnvl-off",
                    "transport:hcas-missing"]
    sound = {"networks": {"IB": 4}, "gdr_channels": 8, "hcas": {"a": "RoCE", "b": "RoCE"}, "gdr": True, "nvls": None}
    assert of_result({"transport": sound}, Wanted(hcas=2)) == [] and of_result({}) == []
    socket = {"networks": {"Socket": 1}, "no_ib_device": True}
    assert [cause.id for cause in causes(of_result({"transport": socket}))] == ["no-verbs"]


def test_a_conviction_says_what_to_do_and_the_most_certain_cause_comes_first() -> None:
    fabric = Fabric(4, 2, 4, rails={("n2", 1): 0.5}, nodes={"n2": 0.87})
    clues = [*of_search(fabric.solve().to_dict()), count("link_downed", 1, "n2", "mlx5_1")]
    assert [cause.id for cause in causes(clues)] == ["link-down", "rail"]
    assert causes(clues)[1].places == [{"node": "n2", "device": "rail 1"}]
    assert [clue.key for clue in of_search({"fleet_wide": "a", "scale": "b"})] == ["search:fleet-wide", "search:scale"]


def test_bounds() -> None:
    (one,) = causes([count("packet_seq_err", node=f"n{number}") for number in range(100)])
    assert (len(one.places), len(one.evidence), one.clues) == (64, 8, 100)
