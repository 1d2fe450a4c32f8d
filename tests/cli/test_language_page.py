"""The pages of the language: the text from docstrings, and that hand-written parts are kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilelang_npu import TileError
from tilelang_npu.cli.language_page import GROUPS, MARK, _text, references, write
from tilelang_npu.language import stubs
from tilelang_npu.language.elements import TOKENS


def test_every_function_of_the_language_is_on_one_page() -> None:
    headings = [name for text in references().values() for line in re.findall(r"^## .*$", text, re.MULTILINE)
                for name in re.findall(r"`T\.([\w.]+)`", line)]
    assert len(headings) == len(set(headings))
    others = {name for name in stubs.callables() if name not in headings}
    assert others == {*TOKENS, *stubs.BUFFERS, "dtype"} & {*stubs.callables()}  # element types, and classes of buffers
    assert {"vadd", "gemm", "copy", "Pipelined", "alloc_shared", "tile.add", "reduce_sum", "set_flag", "print"} <= set(headings)


def test_functions_stand_with_their_kin() -> None:
    pages = references()
    for group, name in (("moving", "copy"), ("products", "gemm"), ("loops", "Parallel"), ("buffers", "alloc_ub"),
                        ("order", "set_flag"), ("looking", "print"), ("reductions", "reduce_sum"), ("kernels", "Kernel")):
        assert [page for page, text in pages.items() if re.search(rf"^## .*`T\.{name}`", text, re.MULTILINE)] == [group]
    assert "## `kernel.mlir(" in pages["host"]
    assert "_check_written" not in pages["host"]


def test_a_docstring_becomes_markdown() -> None:
    doc = ("Does ``x`` to :class:`Thing`.\n\nArgs:\n    a: the one,\n        of two lines.\n    *rest, b: others.\n\n"
           "Raises:\n    TileError: T1.")
    assert _text(doc) == ("Does `x` to `Thing`.\n\nArgs:\n\n- `a`: the one,\n  of two lines.\n- `*rest, b`: others.\n\n"
                          "Raises:\n\n- `TileError`: T1.\n")


def test_text_above_the_mark_is_kept(tmp_path: Path) -> None:
    for group in GROUPS:
        (tmp_path / f"{group}.md").write_text(f"# {group}\n\nby hand\n\n{MARK}\nold\n", encoding="utf-8")
    written = write(tmp_path)
    assert sorted(written) == sorted(tmp_path / f"{group}.md" for group in GROUPS)
    for group, text in references().items():
        assert (tmp_path / f"{group}.md").read_text(encoding="utf-8") == f"# {group}\n\nby hand\n\n{MARK}\n{text}"


def test_a_page_without_its_mark_is_refused(tmp_path: Path) -> None:
    for group in GROUPS:
        (tmp_path / f"{group}.md").write_text("# by hand alone\n", encoding="utf-8")
    with pytest.raises(TileError, match="has no mark after which it is generated") as caught:
        write(tmp_path)
    assert caught.value.code == "T801"
    assert MARK.strip() in caught.value.help
    assert {page.read_text(encoding="utf-8") for page in tmp_path.iterdir()} == {"# by hand alone\n"}
