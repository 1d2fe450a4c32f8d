"""A script as text: which of its definitions are executed again, and the factory's call that made a kernel."""

from __future__ import annotations

import linecache
import pickle
import textwrap
from pathlib import Path
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError

pytest.importorskip("libcst", reason="the extra improve is not installed")

from improve.scripts import ROWS, program
from tilelang_npu.runtime.improve.script_version import FactoryCall, call_of, program_of


@tilelang.jit(target="npuir")
def copied(n: int, tile: int = 64) -> Any:
    @T.prim_func
    def copied(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, tile), is_npu=True) as (block, _):
            x = T.alloc_shared((tile,), "float32")
            T.copy(X[block * tile], x)
            T.copy(x, Y[block * tile])

    return copied


def test_the_definitions_of_the_kernel_are_executed_and_no_others() -> None:
    made = program('''
        from __future__ import annotations
        TILE = 16
        WIDE = TILE * 4 if TILE > 8 else 64
        effects.append("call")
        COUNT = effects.append("value")

        @T.macro
        def load(source, target):
            T.copy(source, target)

        def unused():
            return 1

        @tilelang.jit(target="npuir")
        def made(rows):
            effects.append("factory")

            @T.prim_func
            def made(X: T.Tensor((rows, WIDE), "float32")):
                with T.Kernel(1, is_npu=True) as (_, _):
                    x = T.alloc_shared((TILE, WIDE), "float32")
                    load(X[0, 0], x)

            return made
    ''', "made", rows=32)
    effects: list[str] = []
    made.names["effects"] = effects  # type: ignore[index]  # the names of these tests are a dictionary
    draft = made.draft()
    assert effects == ["factory"]
    assert draft.traced.parameters[0].shape == (32, 64)
    assert "unused" not in made.names and "TILE" not in made.names, "names of the script are left as they are"


def test_error_messages_show_the_lines_of_the_version() -> None:
    text = ROWS.replace("T.alloc_shared((tile, columns)", "T.alloc_shared((tile, column)")
    with pytest.raises(TileError) as caught:
        program(text, "scaled", rows=96, columns=8).draft()
    assert "<script.py, version " in str(caught.value)
    assert 'x = T.alloc_shared((tile, column), "float32")' in str(caught.value)


def test_a_script_without_the_factory() -> None:
    with pytest.raises(TileError, match="has no factory 'absent' at its top level") as caught:
        program(ROWS, "absent").draft()
    assert caught.value.code == "T810"


def test_the_call_that_made_a_kernel() -> None:
    kernel = copied(20_000, tile=128)
    found = program_of(kernel)
    assert (found.factory, found.args, found.kwargs, found.path) == ("copied", (), {"n": 20_000, "tile": 128}, Path(__file__))
    assert found.text == Path(__file__).read_text(encoding="utf-8")
    assert found.call_line is not None
    assert "kernel = copied(20_000, tile=128)" in found.text.splitlines()[found.call_line - 1]
    assert call_of(kernel, Path(__file__)) == FactoryCall("copied", (), {"n": 20_000, "tile": 128}, found.call_line)
    assert call_of(kernel, Path("another.py")) is None
    assert found.kernel().mlir() == kernel.mlir()


def test_a_kernel_without_a_factory_says_so() -> None:
    def local() -> Any:
        @tilelang.jit(target="npuir")
        def made(n: int) -> Any:
            return copied.function(n)

        return made

    for kernel in (local()(64), pickle.loads(pickle.dumps(copied(64)))):
        with pytest.raises(TileError) as caught:
            program_of(kernel)
        assert caught.value.code == "T810"


def test_a_source_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "gone.py"
    path.write_text("import tilelang_npu as tilelang\nimport tilelang_npu.language as T\n" + textwrap.dedent(ROWS))
    names: dict[str, Any] = {"__name__": "gone"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    kernel = names["scaled"](96, 8)
    path.unlink()
    linecache.checkcache(str(path))
    with pytest.raises(TileError, match="cannot be read") as caught:
        program_of(kernel)
    assert caught.value.code == "T734"
