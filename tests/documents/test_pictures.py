"""The pictures are the output of docs/pictures/draw.py, with the sizes of the chip table."""

from __future__ import annotations

import runpy
from pathlib import Path
from xml.etree import ElementTree

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"


def test_the_pictures_are_drawn_anew_when_a_table_changes() -> None:
    pictures = runpy.run_path(str(FOLDER / "draw.py"))["PICTURES"]
    assert {path.name for path in FOLDER.glob("*.svg")} == {*pictures}
    for name, draw in pictures.items():
        made = str(draw())
        assert (FOLDER / name).read_text(encoding="utf-8") == made, "run `python docs/pictures/draw.py`"
        ElementTree.fromstring(made)
