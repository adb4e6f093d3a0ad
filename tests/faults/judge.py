# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the findings are those that a row wants: its fault found, its culprit named and nobody else. Pure."""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from tests.faults.detect import Finding
from tests.faults.places import Host, Place
from tests.faults.rows import Detector


def names(text: str, word: str) -> bool:
    """As a word: mlx5_1 is not in mlx5_10, 10.57.0.2 not in 10.57.0.21."""
    return re.search(rf"(?<![\w:])(?<!\d\.){re.escape(word)}(?!\w|[.:]\d)", text) is not None


def strangers(place: Place, culprits: Sequence[Place], hosts: Mapping[str, Host]) -> list[str]:
    """Names of other hosts, and of the host's other rails."""
    known = {culprit.rail.number for culprit in culprits}
    mine = {word for culprit in culprits for word in culprit.rail.identifiers}
    others = [name for name in hosts if name != place.host.name and (place.peer is None or name != place.peer.name)]
    rails = [word for rail in place.host.rails if rail.number not in known for word in rail.identifiers
             if word not in mine]
    return [*others, *rails]


def _fits(finding: Finding, detector: Detector, place: Place) -> bool:
    says = place.fill(list(detector.says))
    if detector.run == "audit":
        return finding.rule == says[0] and finding.rail in (None, place.rail.number) and all(
            text in finding.text for text in says[1:])
    return all(text in finding.text for text in says)


def _named(finding: Finding, place: Place) -> bool:
    return finding.rail == place.rail.number or any(names(finding.text, word) for word in place.rail.identifiers)


def fault(detector: Detector, place: Place, by: str, findings: Iterable[Finding]) -> list[str]:
    """What is wrong with the answer of one detector to one row; ``by`` is what the findings must name."""
    mine = [finding for finding in findings if (finding.host, finding.run) == (place.host.name, detector.run)]
    found = [finding for finding in mine if _fits(finding, detector, place)]
    wanted = " and ".join(map(repr, place.fill(list(detector.says))))
    if not found:
        return [f"{detector.run}: wanted {wanted}; got {'; '.join(one.text[:600] for one in mine) or 'no finding'}"]
    if by == "rail" and not any(_named(finding, place) for finding in found):
        return [f"{detector.run}: {found[0].text[:400]}: does not name rail {place.rail.number} of {place.host.name}"]
    return []


def blames(places: Sequence[Place], findings: Iterable[Finding], hosts: Mapping[str, Host]) -> list[str]:
    """Findings on the row's host that name somebody who has done nothing."""
    host, wrong = places[0].host.name, []
    rails = {place.rail.number for place in places}
    for finding in findings:
        if finding.host != host or finding.note:
            continue
        other = [word for word in strangers(places[0], places, hosts) if names(finding.text, word)]
        if finding.rail is not None and finding.rail not in rails:
            other.append(f"rail {finding.rail}")
        if other:
            wrong.append(f"{finding.run}: names {', '.join(other)}: {finding.text[:400]}")
    return wrong


def twin(place: Place, runs: Iterable[str], findings: Iterable[Finding]) -> list[str]:
    """A legal state has no finding, fails nothing, changes nothing."""
    asked = set(runs)
    return [f"{finding.run}: {finding.text[:400]}" for finding in findings
            if finding.host == place.host.name and finding.run in asked and not finding.note]
