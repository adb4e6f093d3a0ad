# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import states


@pytest.mark.parametrize(("value", "flags", "text"), [
    ("IDLE", (), "IDLE"), ("IDLE+DRAIN", (), "IDLE+DRAIN"), ("idle", ("DRAIN",), "IDLE+DRAIN"),
    (["IDLE", "DRAIN"], (), "IDLE+DRAIN"), (["DRAIN", "IDLE"], (), "IDLE+DRAIN"),
    ("MIXED+DRAIN*", (), "MIXED+DRAIN+NOT_RESPONDING"), ("DOWN+DRAIN+REBOOT_ISSUED", (), "DOWN+DRAIN+REBOOT_ISSUED"),
    ("idle", ("FAIL",), "IDLE+FAIL"), (None, (), "UNKNOWN"), ([], (), "UNKNOWN"),
    ("IDLE+MAINT+RES", (), "IDLE+MAINTENANCE+RESERVED")])
def test_however_it_is_written(value: str | list[str] | None, flags: tuple[str, ...], text: str) -> None:
    assert states.parse(value, flags).text() == text


@pytest.mark.parametrize(("text", "drained", "draining"), [
    ("IDLE+DRAIN", True, False), ("IDLE+DRAIN+COMPLETING", False, True), ("MIXED+DRAIN", False, True),
    ("ALLOCATED+DRAIN", False, True), ("DOWN+DRAIN", False, True), ("IDLE", False, False),
    ("IDLE+DRAIN+REBOOT_REQUESTED", False, True), ("IDLE+DRAIN+NOT_RESPONDING", True, False),
    ("IDLE+DRAIN+INVALID_REG", True, False), ("DRAIN", False, True), ("IDLE+DRAIN+MAINTENANCE", True, False)])
def test_drained_is_idle_and_nothing_else(text: str, drained: bool, draining: bool) -> None:
    state = states.parse(text)
    assert (state.drained, state.draining) == (drained, draining)


def test_usable() -> None:
    for text in ("IDLE", "MIXED+PLANNED", "ALLOCATED+COMPLETING", "IDLE+RESERVED"):
        assert states.parse(text).usable, text
    for text in ("IDLE+DRAIN", "DOWN", "IDLE+NOT_RESPONDING", "IDLE+FAIL", "UNKNOWN", "MIXED+REBOOT_REQUESTED",
                 "IDLE+INVALID_REG", "IDLE+POWERED_DOWN"):
        assert not states.parse(text).usable, text


def test_reboots() -> None:
    assert states.parse("IDLE+DRAIN+REBOOT_REQUESTED").reboot == "requested"
    assert states.parse("DOWN+DRAIN+REBOOT_ISSUED").reboot == "issued"
    assert states.parse("IDLE").reboot == "none"


@pytest.mark.parametrize(("word", "text"), [
    ("idle", "IDLE"), ("idle*", "IDLE+NOT_RESPONDING"), ("drng", "UNKNOWN+DRAIN"), ("drain*", "UNKNOWN+DRAIN+"
     "NOT_RESPONDING"), ("drained", "UNKNOWN+DRAIN"), ("down~", "DOWN+POWERED_DOWN"), ("boot^", "UNKNOWN+REBOOT_ISSUED+"
     "REBOOT_REQUESTED"), ("alloc@", "ALLOCATED+REBOOT_REQUESTED"), ("maint", "UNKNOWN+MAINTENANCE"),
    ("idle$", "IDLE+MAINTENANCE"), ("mix-", "MIXED+PLANNED"), ("alloc+", "ALLOCATED+COMPLETING"),
    ("INVAL", "UNKNOWN+INVALID_REG"), ("plnd", "IDLE+PLANNED"), ("down#", "DOWN+POWERING_UP"),
    ("idle!", "IDLE+POWER_DOWN"), ("idle%", "IDLE+POWERING_DOWN"), ("comp", "UNKNOWN+COMPLETING"),
    ("failing*", "UNKNOWN+FAIL+NOT_RESPONDING")])
def test_words_of_sinfo(word: str, text: str) -> None:
    assert states.compact(word).text() == text


def test_sinfo_calls_a_node_drained_that_is_down() -> None:
    """So its word alone never frees the hardware."""
    assert not states.compact("drained").drained and states.compact("draining").jobs


@pytest.mark.parametrize("word", ["", "*", "idel", "?"])
def test_unknown_words(word: str) -> None:
    with pytest.raises(ValueError, match="wanted a word of sinfo"):
        states.compact(word)
