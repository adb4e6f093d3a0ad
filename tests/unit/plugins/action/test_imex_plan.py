# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.action.imex_plan import ActionModule

HOSTS: dict[str, dict[str, t.Any]] = {
    "g2": {"nvlink_domain": "nvl1", "ansible_host": "192.0.2.2"}, "e1": {"ansible_host": "192.0.2.9"},
    "g1": {"nvlink_domain": "nvl1", "ansible_host": "192.0.2.1"}}


class HostVars(dict[str, t.Any]):
    """As the engine's: raw_get has the values of the files, and an item those with templates rendered."""

    def __init__(self) -> None:
        super().__init__(HOSTS)
        self.rendered: list[str] = []
        # Groups in groups: the engine's own list of `all` has no order then.
        top = SimpleNamespace(hosts=["g2", "e1"], child_groups=[SimpleNamespace(hosts=["g1", "g2"], child_groups=[])])
        self._inventory = SimpleNamespace(groups={"all": top})

    def raw_get(self, host: str) -> t.Any:
        return HOSTS[host]

    def __getitem__(self, host: str) -> t.Any:
        self.rendered.append(host)
        return HOSTS[host]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., t.Any]:
    def call(hostvars: HostVars, **args: t.Any) -> t.Any:
        action: t.Any = object.__new__(ActionModule)
        action._task = SimpleNamespace(check_mode=False, args=args)
        monkeypatch.setattr(ActionBase, "run", lambda *arguments: {})
        return action.run(task_vars={"hostvars": hostvars, "groups": {"all": ["e1", "g1", "g2"]}})

    return call


def test_domains_of_the_inventory(run: t.Callable[..., t.Any]) -> None:
    hostvars = HostVars()
    assert run(hostvars) == {"changed": False, "domains": {"nvl1": {
        "hosts": ["g2", "g1"], "nodes": ["192.0.2.2", "192.0.2.1"], "problems": []}}}
    assert hostvars.rendered == ["g2", "g1"], "templates of hosts without a domain are not looked at"


def test_a_decision_does_not_look_at_the_inventory_again(run: t.Callable[..., t.Any]) -> None:
    domains = run(HostVars())["domains"]
    hostvars = HostVars()
    old = {"restart_required": True, "join_required": False, "owner": "host"}
    found = run(hostvars, domains=domains, batch=["g1"], reads={"g1": old})["domains"]["nvl1"]
    assert (found["action"], found["missing"], found["nodes"]) == ("deferred", ["g2"], ["192.0.2.2", "192.0.2.1"])
    assert run(hostvars, domains=domains, batch=["g1", "g2"], reads={"g1": old, "g2": old})[
        "domains"]["nvl1"]["action"] == "restart"
    assert hostvars.rendered == []


def test_an_option_that_it_does_not_have(run: t.Callable[..., t.Any]) -> None:
    with pytest.raises(AnsibleActionFail, match="imex_plan: .*node"):
        run(HostVars(), node="x")
