#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: armed_revert
short_description: Shows or cancels the undo that a change of a rail with the connection has armed on its host
version_added: 0.1.0
description:
  - With C(allow_management) the modules M(aidc.gpu_cluster.mlx5_port), M(aidc.gpu_cluster.rail_network) and
    M(aidc.gpu_cluster.roce_qos) change a port that carries the connection. Before the first write they save the state
    in C(/var/lib/aidc/revert) and set a timer, C(aidc-revert-ID.timer), which restores it if nobody cancels in time.
  - A host that is rebooted meanwhile gets its old files back before its network manager starts, by a unit that is
    removed with the timer.
  - Their action plugins come back over a new connection and cancel by this module. There is no need to call it by
    hand, but to see what is armed, or what was undone.
  - A change that was undone leaves a note, which the next call of its module reads.
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: It changes nothing of the host but the timer.
  idempotent:
    support: full
options:
  state:
    description: V(cancelled) keeps the change and takes the timer away; V(status) only looks.
    type: str
    choices: [status, cancelled]
    default: status
  module:
    description: Only what this module has armed; all without it.
    type: str
    choices: [mlx5_port, rail_network, roce_qos]
seealso:
  - module: aidc.gpu_cluster.rail_network
notes:
  - Needs root.
  - A lock on the host, C(/run/lock/aidc.lock), is held by the undo, too; so nothing is cancelled in its middle.
"""

EXAMPLES = r"""
- name: What is armed, and what was undone
  aidc.gpu_cluster.armed_revert:
  become: true
  register: reverts

- name: Keep what rail_network has changed
  aidc.gpu_cluster.armed_revert:
    state: cancelled
    module: rail_network
  become: true
"""

RETURN = r"""
before:
  description: What was there, without the saved state.
  returned: success
  type: list
  elements: dict
  contains: &revert
    id:
      description: Name of the undo, which is part of the name of its unit.
      type: str
      sample: rail_network-1a2b3c4d
    module:
      description: The module that armed it.
      type: str
      sample: rail_network
    state:
      description: V(armed), V(undoing) or V(undone).
      type: str
      sample: armed
    seconds:
      description: How long it waits after the last write.
      type: float
      sample: 60
    timer:
      description: V(systemd), or V(process) on a host without it.
      type: str
      sample: systemd
    armed_at:
      description: When, by the host's clock.
      type: str
      sample: "2026-11-30T12:00:00Z"
    undone_at:
      description: When the state was restored, or null.
      type: str
      sample: null
    reason:
      description: Why the host undid it by itself, or null. A reboot of the host is told as such.
      type: str
      sample: the controller did not come back within 60 s
    problems:
      description: What could not be restored.
      type: list
      elements: str
      sample: []
after:
  description: What is there now; in check mode, what would be.
  returned: success
  type: list
  elements: dict
  contains: *revert
commands:
  description: What was done, in check mode what would be done; one list for each undo that is cancelled.
  returned: always
  type: list
  elements: list
  sample: [[cancel, rail_network-1a2b3c4d]]
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: /run/lock/aidc.lock
    got:
      description: What was found.
      type: str
      sample: held by pid 4711 of ops (rail_network) since 2026-11-30T12:00:00Z
    wanted:
      description: What was wanted.
      type: str
      sample: a free lock
    hint:
      description: What to do.
      type: str
      sample: wait for that run to end, then start again
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._revert.states import ARGUMENT_SPEC, perform


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        result = perform(Machine(), module.params["state"], module.params["module"], module.check_mode)
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
