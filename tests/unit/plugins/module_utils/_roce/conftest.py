# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce import argspec, intent
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.model import Request

from tests.unit.plugins.fake import two_rails
from tests.unit.plugins.module_utils._roce.fake import PCI, Qos


def params(**options: t.Any) -> dict[str, t.Any]:
    """Options as Ansible hands them to the module."""
    result = ArgumentSpecValidator(argspec.spec()).validate({"ports": [{"pci": PCI}], **options})
    assert result.error_messages == []
    return dict(result.validated_parameters)


def request_of(**options: t.Any) -> Request:
    request, problems = intent.request(params(**options))
    assert problems == []
    return request


@pytest.fixture
def qos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Qos:
    return Qos(two_rails(tmp_path), monkeypatch)


@pytest.fixture
def ofed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Qos:
    return Qos(two_rails(tmp_path), monkeypatch, ofed=True)
