"""The pages of the language: the text from docstrings, and that hand-written parts are kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.cli.language_page import GROUPS, MARK, _text, preferred, references, write
from tilelang_npu.language import stubs
from tilelang_npu.language.elements import TOKENS
from tilelang_npu.ops import Elementwise, operation
from tilelang_npu.simulator.time.pipe_steps import RUN


def test_every_function_of_the_language_is_on_one_page() -> None:
    headings = [name for text in references().values() for line in re.findall(r"^(?:## |Other names: ).*$", text, re.MULTILINE)
                for name in re.findall(r"`T\.([\w.]+)`", line)]
    assert len(headings) == len(set(headings))
    others = {name for name in stubs.callables() if name not in headings}
    assert others == {*TOKENS, *stubs.BUFFERS, "dtype"} & {*stubs.callables()}  # element types, and classes of buffers
    assert {"vadd", "gemm", "copy", "Pipelined", "alloc_shared", "tile.add", "reduce_sum", "set_flag", "print"} <= set(headings)


@pytest.mark.parametrize(("names", "name"), [
    (["add", "npuir_add", "vadd"], "vadd"), (["npuir_exp", "vexp"], "vexp"), (["axpy"], "axpy"),
    (["clear", "npuir_clear"], "clear"), (["cumsum", "npuir_cumsum", "vcumsum"], "cumsum"), (["npuir_print"], "npuir_print"),
    (["tile.ln", "tile.log"], "tile.ln"), (["vsort32"], "vsort32")])
def test_the_name_to_use(names: list[str], name: str) -> None:
    assert preferred(names) == name


def test_a_function_has_one_heading_and_its_other_names_below() -> None:
    text = references()["elementwise"]
    assert not re.search(r"^## .*,", text, re.MULTILINE)
    (section,) = [part for part in ("\n" + text).split("\n## ") if part.startswith("`T.vadd`")]
    assert "\n\nOther names: `T.add`, `T.npuir_add`.\n\n" in section
    assert "\nExample: `T.vadd(a, b, out)`\n" in section


def test_the_cycles_of_a_page_are_those_of_the_simulator() -> None:
    """For each elementwise function of two or three tiles of float32 that is one instruction."""
    given = re.findall(r"^## `T\.(v\w+)`$(?:(?!^## ).)*?Cycles on Ascend910B2: [^\n]*32 x 128 float32: ([\d.]+)\.$",
                       references()["elementwise"], re.MULTILINE | re.DOTALL)
    checked = 0
    for name, cycles in given:
        entry = operation(name)
        if not isinstance(entry, Elementwise) or "float32" not in entry.dtypes or entry.inputs > 2 or entry.result != "same":
            continue

        call = getattr(T, name)

        @tilelang.jit(target="npuir")
        def kernel(call: Any = call, inputs: int = entry.inputs) -> Any:
            @T.prim_func
            def main(X: T.Tensor((32, 128), "float32")):
                with T.Kernel(1, is_npu=True) as (_, _):
                    a = T.alloc_ub((32, 128), "float32")
                    b = T.alloc_ub((32, 128), "float32")
                    c = T.alloc_ub((32, 128), "float32")
                    T.copy(X, a)
                    T.copy(X, b)
                    if inputs == 1:
                        call(a, c)
                    else:
                        call(a, b, c)
                    T.copy(c, X)

            return main

        launch = kernel().estimate()
        function, expansion = launch.recorded.program.functions[0], launch.expansions[0]
        found = [step.cost.done for event in launch.recorded.blocks[0].streams[0] for step in expansion.of(event)
                 if step.kind == RUN and function.records[step.op].pipe == "V"]
        assert found == [pytest.approx(float(cycles), abs=0.51)], name
        checked += 1
    assert checked >= 20


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
