#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: munge_key
short_description: The key of munge on a host
version_added: 0.1.0
description:
  - Without O(content) the key that is there stays, and one is made where there is none or where C(munged) would take it
    for too short or too long. With O(content) the host gets that key.
  - Mode 0400 and owner are part of it, as C(munged) refuses to start with others. It is not restarted here.
  - Results and diffs hold a fingerprint and never the key, but for O(reveal=true).
author:
  - aidc.gpu_cluster contributors (@aidc)
extends_documentation_fragment:
  - aidc.gpu_cluster.attributes
attributes:
  check_mode:
    support: full
    details: Where no key is there, the fingerprint in check mode is that of a key which is then made anew.
  diff_mode:
    support: none
    details: There is nothing of a key that could be shown.
  idempotent:
    support: full
options:
  path:
    description: The file.
    type: str
    default: /etc/munge/munge.key
  owner:
    description: User that C(munged) runs as; the group is that user's own.
    type: str
    default: munge
  pid_file:
    description: File that C(munged) writes when it starts, for RV(daemon).
    type: str
    default: /run/munge/munged.pid
  content:
    description: The key in base64, 32 to 1024 bytes.
    type: str
  reveal:
    description: Whether RV(content) holds the key. Use C(no_log) with it.
    type: bool
    default: false
seealso:
  - module: aidc.gpu_cluster.slurm_database
notes:
  - Needs root. A lock on the host, C(/run/lock/aidc.lock), keeps two runs apart.
"""

EXAMPLES = r"""
- name: The cluster's key, made if there is none
  aidc.gpu_cluster.munge_key:
    reveal: true
  become: true
  no_log: true
  register: key

- name: Another host gets it
  aidc.gpu_cluster.munge_key:
    content: "{{ key.content }}"
  become: true
  no_log: true
"""

RETURN = r"""
before:
  description: The key as it was, null where there was none.
  returned: success
  type: dict
  contains: &state
    fingerprint:
      description: Tells two keys apart and says nothing about their bits.
      type: str
      sample: 1f0c9ad2b3e4f567
    mode:
      description: Mode of the file.
      type: str
      sample: "0400"
    owner:
      description: Owner of the file.
      type: str
      sample: munge
after:
  description: The key as it is now; in check mode, as it would be.
  returned: success
  type: dict
  contains: *state
commands:
  description: What was done, in check mode what would be done; V(write) with the path.
  returned: always
  type: list
  elements: list
  sample:
    - [write, /etc/munge/munge.key]
fingerprint:
  description: As in RV(after).
  returned: success
  type: str
  sample: 1f0c9ad2b3e4f567
daemon:
  description:
    - V(current) if C(munged) was started after the key was written, V(old) if before, so that it must be restarted,
      V(absent) if it does not run. A run that was killed between the two is found that way.
  returned: success
  type: str
  sample: old
content:
  description: The key in base64.
  returned: with O(reveal=true)
  type: str
  sample: VALUE_SPECIFIED_IN_NO_LOG_PARAMETER
problems:
  description: What stood in the way.
  returned: failure
  type: list
  elements: dict
  contains:
    object:
      description: What it is about.
      type: str
      sample: user munge
    got:
      description: What was found.
      type: str
      sample: no such user
    wanted:
      description: What was wanted.
      type: str
      sample: the user that munged runs as
    hint:
      description: What to do.
      type: str
      sample: install the package munge
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.munge_key import configure

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "path": {"type": "str", "default": "/etc/munge/munge.key", "no_log": False},
    "owner": {"type": "str", "default": "munge"},
    "pid_file": {"type": "str", "default": "/run/munge/munged.pid"},
    "content": {"type": "str", "no_log": True},
    "reveal": {"type": "bool", "default": False},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        result = configure(Machine(), module.params, module.check_mode)
    except AidcError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
