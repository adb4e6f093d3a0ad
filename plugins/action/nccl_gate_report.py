# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import typing as t
from datetime import datetime, timezone
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate import (
    argspec,
    document,
    html,
    junit,
    report,
    store,
)
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.report import HostFacts
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.fleet_lock import fleet_lock

# What the role registers, by field of HostFacts.
REGISTERED = {
    "member": "__nccl_gate_member", "made": "__nccl_gate_made", "access": "__nccl_gate_access",
    "paths": "__nccl_gate_paths", "test": "__nccl_gate_test", "search": "__nccl_gate_search",
    "cleanup": "__nccl_gate_cleanup",
}
SHOWN = ("pool", "state", "label", "stage", "reason", "passed", "simulated", "run_id")


def facts_of(variables: t.Mapping[str, t.Any]) -> HostFacts:
    """What one host brought back. A skipped step counts as one that did not run."""
    values = {}
    for name, variable in REGISTERED.items():
        value = variables.get(variable)
        values[name] = dict(value) if isinstance(value, t.Mapping) and not value.get("skipped") else {}
    return HostFacts(**values)


class ActionModule(ActionBase):
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        variables = task_vars or {}
        result: dict[str, t.Any] = super().run(tmp, variables)
        _valid, args = self.validate_argument_spec(argspec.REPORT)
        hostvars = variables["hostvars"]
        hosts = {name: facts_of(hostvars[name]) for name in args["hosts"]}
        pools = [str(hosts[name].member.get("pool") or hostvars[name].get("nccl_gate_pool") or "") for name in hosts]
        names = [name for name in dict.fromkeys(pools) if name]
        folder, now = Path(args["report_dir"]), datetime.now(timezone.utc)
        try:
            if args["mode"] == "verify":
                records = [store.verified(folder, name, now, args["max_age_days"]) for name in names]
            else:
                records = self._records(names, hosts, folder, now)
        except store.StoreError as error:
            raise AnsibleActionFail(str(error)) from error
        failed = [record for record in records if report.failed(record)]
        result.update(
            changed=False, pools=[{key: record.get(key) for key in SHOWN} for record in records],
            table=report.table(records), failed_pools=[record["pool"] for record in failed],
            message="; ".join(map(report.message, failed)), report_dir=str(folder),
        )
        return result

    def _records(self, names: list[str], hosts: report.Hosts, folder: Path, now: datetime) -> list[dict[str, t.Any]]:
        check_mode = bool(self._task.check_mode)
        records = [report.record(name, hosts, now.strftime(store.TIME_FORMAT), check_mode) for name in names]
        if check_mode:
            return records
        searches: dict[str, document.Document] = {}
        # A report and its log belong together.
        with fleet_lock(folder, "nccl_gate_report", "nccl_gate_report_dir"):
            for record in records:
                head = record["hosts"][0] if record["hosts"] else ""
                store.write(folder, record, str(hosts[head].test.get("log") or "") if head in hosts else "")
                case = hosts[head].search.get("case") if head in hosts and record["search"] else None
                if case:
                    searches[record["pool"]] = document.of_case(case, record["simulated"])
                store.write_page(folder, record["pool"], html.render(searches[record["pool"]]) if case else "")
            store.write_junit(folder, junit.render_pools(records, searches))
        return records
