"""Output in notebooks: HTML of reports and of MLIR, which contains the report's text, and cells by their numbers."""

from __future__ import annotations

import re
import sys
from html import unescape
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.display import Mlir, report
from tilelang_npu.errors import Location


@pytest.fixture
def kernel() -> Any:
    @T.prim_func
    def main(X: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (block, half):
            x = T.alloc_ub((64,), "float32")
            if half == 0:
                T.copy(X, x)
                T.tile.add(x, x, x)
                T.copy(x, X)

    made = tilelang.compile(main, target="ascendc")
    made(np.ones(64, np.float32))
    return made


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


def test_a_notebook_shows_the_text_of_every_report_in_colours(kernel: Any) -> None:
    launch = kernel.last_launch
    for value, text in ((kernel.explain(), None), (kernel.sync_report(), None), (kernel.memory_report(), None),
                        (kernel.mlir(), None), (kernel.mlir("tile", annotate=True), None), (launch, launch.summary())):
        html = value._repr_html_()
        assert text_of(html) == (text or str(value))
        assert "<span style=" in html


def test_the_text_of_a_module_is_a_string(kernel: Any) -> None:
    text = kernel.mlir()
    assert isinstance(text, str)
    assert isinstance(text, Mlir)
    assert text == str(text)
    assert type(text + "") is str


@pytest.mark.parametrize(("text", "coloured"), [
    ("error[T104]: no\n  --> a/b.py:3:4", ["error[T104]:", "a/b.py:3:4"]),
    ("race[S201]: <x> & y\n In[3]:4", ["race[S201]:", "In[3]:4"]),
    ("title\nrest", ["title"]), ("", [])])
def test_codes_and_places_are_coloured_and_all_is_escaped(text: str, coloured: list[str]) -> None:
    html = report(text)
    assert text_of(html) == text
    assert [unescape(part) for part in re.findall(r"<span[^>]*>(.*?)</span>", html)] == coloured


def test_the_tokens_of_mlir() -> None:
    html = Mlir('%0 = hivm.hir.vadd ins(%a : memref<4xf32, #hivm.address_space<ub>>) "x" // a "b"')._repr_html_()
    assert [unescape(part) for part in re.findall(r"<span[^>]*>(.*?)</span>", html)] == [
        "%0", "hivm.hir.vadd", "%a", "memref", "#hivm.address_space", '"x"', '// a "b"']


def test_a_place_in_a_cell_is_named_by_the_number_of_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    place, other = Location("/tmp/ipykernel_1/22.py", 3, 5), Location("kernel.py", 3)
    assert str(place) == "/tmp/ipykernel_1/22.py:3:5"
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map={place.file: 7}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert (str(place), place.shown_line, str(other)) == ("In[7]:3:5", "In[7]:3", "kernel.py:3")
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert str(place) == "/tmp/ipykernel_1/22.py:3:5"
