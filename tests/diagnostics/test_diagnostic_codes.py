"""The registry of diagnostic codes has the codes that the package raises, and no others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from tilelang_npu.diagnostic_codes import TITLES, Code

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tilelang_npu"
RAISED = {code for file in SOURCE.rglob("*.py") if file.name != "diagnostic_codes.py"
          for code in re.findall(r"[\"']([ST]\d{3})[\"']", file.read_text())}


def test_each_code_that_is_raised_is_registered_and_each_registered_code_is_raised() -> None:
    assert set(TITLES) == RAISED


def test_the_type_and_the_titles_have_the_same_codes_in_order() -> None:
    assert tuple(TITLES) == get_args(Code) == tuple(sorted(TITLES))


def test_titles_are_short_and_no_sentences() -> None:
    for code, title in TITLES.items():
        assert title == title.strip() and not title.endswith("."), code
        assert len(title) <= 90, code
