# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab of the default fleet that most of these tests share."""
from __future__ import annotations

import pytest

from tests import lab_plugin
from tests.lab_plugin import BIN, ROOT, Lab, Labs, Play, labs

__all__ = ["BIN", "CLASS_HOSTS", "NAME", "ROOT", "Lab", "Play", "lab_command", "labs", "run_lab"]

NAME = "test"
CLASS_HOSTS = {"gb200": ["gb1", "gb2", "gb3", "gb4"], "l40s": ["l40s1", "l40s2"], "epyc9754": ["epyc1"]}


def lab_command(*argv: str, name: str = NAME) -> list[str]:
    return lab_plugin.lab_command(*argv, name=name)


def run_lab(*argv: str, name: str = NAME) -> None:
    lab_plugin.run_lab(*argv, name=name)


@pytest.fixture(scope="session")
def lab(labs: Labs) -> Lab:
    lab = labs(NAME)
    for group, hosts in CLASS_HOSTS.items():
        assert lab.hosts(group) == hosts
    return lab


@pytest.fixture(scope="session")
def configured(lab: Lab, labs: Labs, request: pytest.FixtureRequest) -> Lab:
    """The lab after a first site.yml: test_site's is as good, unless its slow tests have changed what they found."""
    is_changed = any(item.path.name == "test_site.py" and item.get_closest_marker("slow")
                     for item in request.session.items)
    if NAME in labs.converged and not is_changed:
        return lab
    done = lab.play("site.yml")
    assert done.code == 0, done.text[-4000:]
    return lab


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """test_site starts from bare hosts, so it comes before whoever needs them configured."""
    items.sort(key=lambda item: item.path.name != "test_site.py")
