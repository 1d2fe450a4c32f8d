"""The argument ``unit_flag``: its modes in HIVM, and numbers that are none."""

from __future__ import annotations

import pytest

from tilelang_npu.errors import TileError
from tilelang_npu.language.unit_flag_argument import passes_on, unit_flag_mode


@pytest.mark.parametrize(("given", "mode"), [(None, None), (0, None), (0b10, "ENABLED_WITHOUT_UPDATE"),
                                             (0b11, "ENABLED_WITH_UPDATE")])
def test_the_modes(given: object, mode: str | None) -> None:
    assert unit_flag_mode("T.mma", given) == mode
    assert passes_on("T.mma", given) is None, "a constant needs no condition"


@pytest.mark.parametrize("given", [1, 4, -1, True, 2.0, "3"])
def test_other_numbers_are_refused(given: object) -> None:
    with pytest.raises(TileError, match=r"T\.copy: unit_flag is ") as reported:
        unit_flag_mode("T.copy", given)
    assert reported.value.code == "T145"
    assert "0b10" in reported.value.help
    assert "0b11" in reported.value.help
