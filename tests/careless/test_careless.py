"""A typical typing error gives one message at its position, whose advice works: the program that follows it gives the right
result.

``statements.py`` has statements in the body of one small kernel, ``programs.py`` whole programs. A row has the mistake, the
code of the error, the text at the caret, the beginning of the advice, the corrected version, and its result, by NumPy;
rows without a mistake look wrong and are right.
"""

from __future__ import annotations

import linecache
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from careless import programs, statements
from tilelang_npu import TileError

A, B = (np.random.default_rng(seed).standard_normal((8, 64)).astype(np.float32) for seed in (1, 2))

BODY = '''\
import math
import numpy as np
{library}import tilelang_npu as tilelang
import tilelang_npu.language as T

TABLE = np.ones((8, 64), np.float32)


def doubled(x):
    return x * 2


@tilelang.jit(target="{dialect}", out_idx=[-1], pass_configs={switches})
def factory(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.{alloc}((M, N), "float32")
            b = T.{alloc}((M, N), "float32")
            c = T.{alloc}((M, N), "float32")
            r = T.{alloc}((M, 1), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(B, c)
{body}
            T.copy(c, C)

    return main
'''


def put(array: Any, place: Any, value: Any) -> Any:
    """Returns a copy of the array with ``value`` at ``place``."""
    made = array.copy()
    made[place] = value
    return made


def _statement(body: str, dialect: str) -> str:
    ascendc = dialect == "ascendc"
    filled = BODY.replace("{dialect}", dialect).replace("{alloc}", "alloc_ub" if ascendc else "alloc_shared")
    filled = filled.replace("{switches}", '{"tl.ascend_auto_sync": True}' if ascendc else "{}")
    if "torch." in body:
        pytest.importorskip("torch", reason="torch is an optional package; its tests need it")
    filled = filled.replace("{library}", "import torch\n" if "torch." in body else "")
    return filled.replace("{body}", textwrap.indent(body, " " * 12))


def _program(base: str, edits: Sequence[tuple[str, str]]) -> str:
    text = programs.HEAD + base
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def _run(path: Path, text: str) -> dict[str, Any]:
    path.write_text(text, encoding="utf-8")
    linecache.checkcache(str(path))
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(text, str(path), "exec"), names)
    return names


def _refused(path: Path, caught: pytest.ExceptionInfo[TileError], code: str, at: str, advice: str) -> None:
    error = caught.value
    assert error.code == code, error
    assert error.location is not None, error
    assert error.location.file == str(path), error
    text = error.location.source()
    assert at in text[max(error.location.column - 1, 0):], error
    assert error.help.startswith(advice), error
    shown = str(error)
    assert shown.count("error[") == 1
    assert f"  --> {path}:{error.location.line}" in shown
    assert error.location.column == 0 or "^" in shown


MISTAKES = [row for row in statements.CASES if row[2] is not None]


@pytest.mark.parametrize("row", MISTAKES, ids=lambda row: row[0])
def test_a_careless_statement_ends_in_one_message(tmp_path: Path, row: Any) -> None:
    _, dialect, wrong, code, at, advice, _, _ = row
    path = tmp_path / "kernel.py"
    factory = _run(path, _statement(wrong, dialect))["factory"]
    with pytest.raises(TileError) as caught:
        factory(8, 64)(A, B)
    _refused(path, caught, code, at, advice)


@pytest.mark.filterwarnings("ignore::tilelang_npu.runtime.settings.log.TileWarning")
@pytest.mark.parametrize("row", statements.CASES, ids=lambda row: row[0])
def test_the_repaired_statement_runs_right(tmp_path: Path, row: Any) -> None:
    _, dialect, _, _, _, _, right, expected = row
    factory = _run(tmp_path / "kernel.py", _statement(right, dialect))["factory"]
    wanted = eval(expected, {"np": np, "math": __import__("math"), "put": put, "a": A, "b": B})
    np.testing.assert_allclose(factory(8, 64)(A, B), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("row", programs.CASES, ids=lambda row: row[0])
def test_a_careless_program_ends_in_one_message(tmp_path: Path, row: Any) -> None:
    _, base, wrong, code, at, advice, _, _ = row
    path = tmp_path / "program.py"
    with pytest.raises(TileError) as caught:
        _run(path, _program(base, wrong))
    _refused(path, caught, code, at, advice)


def _distinct() -> list[Any]:
    """Rows whose repaired programs differ."""
    seen: dict[str, Any] = {}
    for row in programs.CASES:
        seen.setdefault(_program(row[1], row[6]), row)
    return list(seen.values())


@pytest.mark.parametrize("row", _distinct(), ids=lambda row: row[0])
def test_the_repaired_program_runs_right(tmp_path: Path, row: Any) -> None:
    _, base, _, _, _, _, right, expected = row
    names = _run(tmp_path / "program.py", _program(base, right))
    np.testing.assert_allclose(names["result"], eval(expected, names), rtol=1e-5)
