# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack import system

from tests.unit.plugins.fake import failed, ok
from tests.unit.plugins.stack_node import KERNEL, NEXT, stack_node


@pytest.mark.parametrize("certificate", ["/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der"])
def test_the_key_of_dkms_or_that_of_ubuntu(tmp_path: Path, certificate: str) -> None:
    node = stack_node(tmp_path)
    node.override["mokutil"] = lambda call: ok("SecureBoot enabled\n") if call[1] == "--sb-state" else ok(
        f"{call[2]} is already enrolled\n")
    assert system.secure_boot(node.machine(), []) == (True, False)
    node.put(certificate)
    assert system.secure_boot(node.machine(), []) == (True, True)
    assert node.calls[-1] == ("mokutil", "--test-key", certificate)


def test_secure_boot_that_is_off_or_not_there(tmp_path: Path) -> None:
    node = stack_node(tmp_path)
    assert system.secure_boot(node.machine(), []) == (None, None)
    node.override["mokutil"] = lambda call: ok("SecureBoot disabled\n")
    assert system.secure_boot(node.machine(), []) == (False, None)
    node.override["mokutil"] = lambda call: failed(255, "EFI variables are not supported on this system\n")
    assert system.secure_boot(node.machine(), []) == (None, None)


def test_kernels_that_can_be_booted(tmp_path: Path) -> None:
    node = stack_node(tmp_path)
    node.put(f"/lib/modules/{NEXT}/modules.dep")
    assert system.kernels(node.machine()) == (KERNEL,)
    node.kernel(NEXT)
    assert system.kernels(node.machine()) == (KERNEL, NEXT)
