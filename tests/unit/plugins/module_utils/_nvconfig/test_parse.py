# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvconfig import parse

FIXTURES = Path(__file__).resolve().parent / "fixtures"
ROOT = next(parent for parent in Path(__file__).resolve().parents if (parent / "galaxy.yml").exists())
SAMPLES = ROOT.parent / "shared" / "samples"


def fixture(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")


def values(text: str) -> dict[str, tuple[str | None, str | None, str]]:
    return {name: (row.default.text if row.default else None, row.current.text if row.current else None, row.next.text)
            for name, row in parse.query(text, "x").rows.items()}


def test_narrow_columns_flags_and_arrays() -> None:
    reading = parse.query(fixture("narrow"), "0000:03:00.0")
    assert (reading.pci, reading.device_type) == ("0000:03:00.0", "ConnectX6DX")
    assert reading.card == "CARD-A_Ax, ConnectX-6 Dx EN adapter card; 100GbE ; Dual-port QSFP56; PCIe 4.0 x16"
    assert values(fixture("narrow"))["SRIOV_EN"] == ("False(0)", "True(1)", "True(1)")
    assert reading.rows["HOST_CHAINING_DESCRIPTORS"].next.is_array
    assert [name for name, row in reading.rows.items() if row.read_only] == ["PHY_FEC_OVERRIDE_P1"]


def test_a_value_wider_than_its_column_leaves_one_blank() -> None:
    found = values(fixture("wide"))
    assert found["PCI_ATOMIC_MODE"] == ("PCI_ATOMIC_DISABLED_EXT_ATOMIC_ENABLED(0)",) * 3
    assert found["PCI_DOWNSTREAM_PORT_OWNER[0]"] == ("DEVICE_DEFAULT(0)", "148", "DEVICE_DEFAULT(0)")
    row = parse.query(fixture("wide"), "x").rows["SOME_MASK"]
    assert row.default is not None and row.default.number is None and row.next.number == 16


def test_firmware_that_cannot_show_default_and_current() -> None:
    assert values(fixture("next_only")) == {"LINK_TYPE_P1": (None, None, "IB(1)"), "CNP_DSCP_P1": (None, None, "26")}
    assert parse.query(fixture("next_only"), "x").card is None


@pytest.mark.parametrize(("columns", "shown"), [
    ("Default  Next Boot", ("1", None, "2")), ("Current Next Boot", (None, "1", "2")),
])
def test_firmware_that_shows_one_of_both(columns: str, shown: tuple[str | None, ...]) -> None:
    assert values(f"Configurations:   {columns}\n  A   1  2\n") == {"A": shown}


@pytest.mark.parametrize(("text", "message"), [
    ("", "no line that begins"), ("\ufffd{{ nonsense", "no line that begins"),
    ("Configurations: Next Boot New\n A 1 2\n", "unknown columns"),
    ("Configurations: Next Boot\n A 1 2\n", "3 words"), ("Configurations: Next Boot\n A 1\n A 1\n", "A twice"),
    ("Configurations: Default Current Next Boot\n A 1 1\n", "wanted a name and 3 values"),
    ("Device #1:\nDevice type: X\nDevice #2:\nConfigurations: Next Boot\n", "more than one device"),
    ("Configurations: Next Boot\n *\n", "0 words"),
])
def test_garbage_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse.query(text, "x")


@pytest.mark.parametrize(("said", "name"), [
    ("-E- Unknown Parameter: LINK_TYPE_P2", "LINK_TYPE_P2"), ("-E- The Device doesn't support CNP_DSCP_P1 parameter",
                                                             "CNP_DSCP_P1"),
    ("-E- Failed to find Param / TLV with name 'LINK_TYPE_P2'", "LINK_TYPE_P2"),
    ("-E- Unknown Parameter: AN_ARRAY", "AN_ARRAY[1]"), ("-E- The Device doesn't support AN_ARRAY[1] parameter",
                                                        "AN_ARRAY[1]"),
    # One that nobody asked for, another error, and no error.
    ("-E- Unknown Parameter: OTHER", None), ("-E- Failed to open the device", None),
    ("LINK_TYPE_P2 unknown parameter", None),
    ("-E- Access to LINK_TYPE_P2 failed", None), ("-E- Unknown Parameter: LINK_TYPE_P", None),
])
def test_which_parameter_is_not_known(said: str, name: str | None) -> None:
    assert parse.unknown(f"heading\n{said}\n", ["CNP_DSCP_P1", "LINK_TYPE_P2", "AN_ARRAY[1]"]) == name


def test_errors_stand_below_the_headings() -> None:
    assert parse.errors(fixture("unknown")) == ["The Device doesn't support LINK_TYPE_P1 parameter"]
    assert parse.unknown(fixture("unknown"), ["LINK_TYPE_P1"]) == "LINK_TYPE_P1"


def test_what_set_says_about_loading() -> None:
    assert parse.wants_power_cycle("-I- Please power cycle machine to load new configurations.")
    assert not parse.wants_power_cycle("-I- Please reboot machine to load new configurations.")


def test_reset_levels() -> None:
    assert parse.reset_levels(fixture("levels")) == {0, 4}
    with pytest.raises(ValueError, match="Reset-levels"):
        parse.reset_levels("-E- Failed")


# Names: device type, number of rows, the rows whose next value is not the current one.
CONFORMANCE = {
    "mlxconfig-1.txt": ("ConnectX6LX", 14, []), "mlxconfig-2.txt": ("ConnectX7", 17, []),
    "mlxconfig-3.txt": ("ConnectX9", 4, ["PCI_DOWNSTREAM_PORT_OWNER[0]", "PCI_DOWNSTREAM_PORT_OWNER[1]",
                                         "PCI_DOWNSTREAM_PORT_OWNER[4]"]),
    "mlxconfig-5.txt": ("ConnectX4LX", 6, []), "mlxconfig-6.txt": ("BlueField2", 8, ["CRYPTO_POLICY"]),
}


@pytest.mark.skipif(not SAMPLES.exists(), reason="the collected samples are not beside the checkout")
@pytest.mark.parametrize("name", CONFORMANCE)
def test_conformance(name: str) -> None:
    reading = parse.query((SAMPLES / name).read_text(encoding="utf-8"), "x")
    differing = [row.name for row in reading.rows.values() if row.current and row.current.number != row.next.number]
    assert (reading.device_type, len(reading.rows), differing) == CONFORMANCE[name]
    assert all(value.number is not None or value.is_array for row in reading.rows.values() for value in row.values)


@pytest.mark.skipif(not SAMPLES.exists(), reason="the collected samples are not beside the checkout")
def test_conformance_of_the_other_texts() -> None:
    with pytest.raises(ValueError, match="unknown columns"):
        parse.query((SAMPLES / "mlxconfig-4.txt").read_text(encoding="utf-8"), "the answer of a set")
    assert parse.reset_levels((SAMPLES / "mlxfwreset-1.txt").read_text(encoding="utf-8")) == {3, 4}
