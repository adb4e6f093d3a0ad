# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from lab import image


def test_key_changes_with_what_goes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    before = image.key()
    assert before == image.key()
    monkeypatch.setattr(image, "OPTIONS", (*image.OPTIONS, "--include=vim"))
    assert image.key() != before
