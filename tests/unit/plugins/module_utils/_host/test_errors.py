# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError, Problem


def test_message_names_object_got_wanted_hint_and_that_nothing_was_changed() -> None:
    error = AidcError([Problem("port", "1500", "4200", "look there"), Problem("other", "a", "b")])
    assert str(error) == "port: got 1500, wanted 4200 (look there); other: got a, wanted b. Nothing was changed."
    assert error.as_result()["changed"] is False


def test_message_names_what_was_done() -> None:
    error = AidcError([Problem("port", "1500", "4200")], [("ip", "link"), ("write", "/x")])
    assert str(error).endswith("Done before the error: ip link; write /x.")
    assert error.as_result() == {
        "msg": str(error), "changed": True, "commands": [["ip", "link"], ["write", "/x"]],
        "problems": [{"object": "port", "got": "1500", "wanted": "4200", "hint": ""}],
    }
