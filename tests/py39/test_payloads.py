
"""Runs in the root only: each module's payload, piped into Python as Ansible does, gives the module's own answer."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

PAYLOADS = Path(os.environ["AIDC_PAYLOADS"])
FILES = sorted(path for path in PAYLOADS.iterdir() if path.suffix != ".control")
MODULES = sorted({path.stem for path in FILES})


def answer(path: Path) -> dict[str, t.Any]:
    """The module's own answer; an exception is none, also where AnsiballZ's wrapper makes JSON of it."""
    with open(path, "rb") as payload:
        done = subprocess.run([sys.executable], stdin=payload, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    result: dict[str, t.Any] = json.loads(done.stdout)
    assert "exception" not in result and "Traceback" not in done.stdout
    assert done.returncode == (1 if result.get("failed") else 0)
    return result


def test_this_is_the_python_of_the_tier() -> None:
    assert sys.version_info[:2] == (3, 9)


def test_only_module_utils_of_ansible_is_there() -> None:
    with pytest.raises(ImportError):
        __import__("ansible.constants")
    with pytest.raises(ImportError):
        __import__("yaml")


def test_every_module_is_here() -> None:
    sources = Path(__file__).resolve().parents[2] / "plugins" / "modules"
    assert sorted(path.stem for path in sources.glob("*.py") if path.stem != "__init__") == MODULES


def test_an_exception_is_found_out() -> None:
    """A module that Python 3.9 cannot run."""
    with pytest.raises(AssertionError, match="takes no keyword arguments"):
        answer(PAYLOADS / "broken.control")


@pytest.mark.parametrize("name", MODULES)
def test_wrong_arguments_are_refused(name: str) -> None:
    """An unknown parameter; without an example to add it to, what is missing may be said first."""
    result = answer(PAYLOADS / f"{name}.unknown")
    assert result["failed"] is True
    refused = f"Unsupported parameters for (aidc.gpu_cluster.{name}) module: no_such_parameter."
    wanted = refused if PAYLOADS / f"{name}.example" in FILES else (refused, "missing required arguments: ")
    assert result["msg"].startswith(wanted), result["msg"]
    assert result["invocation"]["module_args"]["no_such_parameter"] == 1


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix != ".unknown"], ids=lambda path: path.name)
def test_check_mode_call_is_answered(path: Path) -> None:
    result = answer(path)
    if result.get("failed"):
        assert result["msg"]
    else:
        assert isinstance(result["changed"], bool)
