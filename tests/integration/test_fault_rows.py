# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The quick rows of tests/faults/fabric.yml with their legal twins; `make faults` runs all of them."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import rows
from tests.faults.__main__ import SETUP, SILENT
from tests.faults.evaluate import Evaluator, Result
from tests.integration.conftest import Labs

# The rows run together, in the set-up of the first of them.
pytestmark = pytest.mark.timeout(900)
FLEET = "tests/faults/small.yml"
ROWS, PAIRS = rows.choose(*rows.load(), [], quick=True)


@pytest.fixture(scope="module", name="evaluator")
def fixture_evaluator(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with labs.during("ftrows", FLEET) as lab:
        for playbook in SETUP:
            done = lab.play(playbook, may_meet_nobody=True)
            assert done.code == 0, done.text[-4000:]
        yield Evaluator(lab.instance, lab.inventory, FLEET, Path(tmp_path_factory.mktemp("rows")))


@pytest.fixture(scope="module", name="results")
def fixture_results(evaluator: Evaluator) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = {}
    for result in evaluator.run(ROWS, PAIRS):
        found.setdefault(result.name, []).append(result)
    return found


def test_the_clean_lab_has_no_finding(evaluator: Evaluator) -> None:
    assert evaluator.silent(SILENT) == []


@pytest.mark.parametrize("name", [*ROWS, *PAIRS])
def test_row(results: dict[str, list[Result]], name: str) -> None:
    """The fault is found, its legal twin is not."""
    verdicts = {result.phase: result.verdict for result in results[name]}
    wanted = {"fault": "detected"} if name in PAIRS else {"fault": "detected", "twin": "no finding"}
    assert verdicts == wanted, [reason for result in results[name] for reason in result.why]
