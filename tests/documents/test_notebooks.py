"""The notebooks of docs/: their cells run from top to bottom. Building the site executes them in a Jupyter kernel."""

from __future__ import annotations

import json
import linecache
from pathlib import Path
from typing import Any

import pytest

from documents.pages import DOCS
from tilelang_npu.errors import TileError

NOTEBOOKS = sorted(DOCS.rglob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_do_what_they_say(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILELANG_NPU_SANITIZE", "")  # restores the variable after the test if a cell sets it
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"], "what a cell shows is made when the site is built"
        assert cell["execution_count"] is None
        text, name = "".join(cell["source"]), f"<{path.stem} {number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        if "raises-exception" in cell["metadata"].get("tags", ()):
            with pytest.raises(TileError):
                exec(compile(text, name, "exec"), names)
        else:
            exec(compile(text, name, "exec"), names)
