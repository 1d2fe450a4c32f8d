"""Random expressions over elements of any two types, loop indices and parameters: compiled as interpreted, bit by bit.

Each is stored to a tile of a third type by a ``T.Parallel``, as vector work and point by point, and by loops of ``T.serial``.
``TILELANG_RANDOM_EXPRESSIONS=1000 pytest tests/test_random_expressions.py`` sets the number of cases.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang

EXPRESSIONS = int(os.environ.get("TILELANG_RANDOM_EXPRESSIONS", "25"))
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = ("float16", "bfloat16", "float32")
ROWS, COLUMNS = 4, 23
PARALLEL = "for i, j in T.Parallel({rows}, {columns}):\n                "
SERIAL = "for i in T.serial({rows}):\n              for j in T.serial({columns}):\n                "

TEXT = """
import tilelang_npu.language as T

def make():
    @T.prim_func
    def main(X: T.Tensor(({rows}, {columns}), "{first}"), Y: T.Tensor(({rows}, {columns}), "{second}"),
             Z: T.Tensor(({rows}, {columns}), "{third}"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_ub(({rows}, {columns}), "{first}")
            y = T.alloc_ub(({rows}, {columns}), "{second}")
            z = T.alloc_ub(({rows}, {columns}), "{third}")
            T.copy(X, x)
            T.copy(Y, y)
            {loops}z[i, j] = {value}
            T.copy(z, Z)
    return main
"""


def leaves(first: str, second: str, *, whole: bool) -> st.SearchStrategy[str]:
    """Returns elements of whole tiles and of broadcast rows or columns, of integer or float types."""
    found = ["i", "j", "n", "cid", "3", "100", "70000", "5000000000"] if whole else ["0.5", "2.0"]
    for name, kind in (("x", first), ("y", second)):
        if (kind in INTEGERS) is whole:
            found += [f"{name}[i, j]", f"{name}[i, j]", f"{name}[0, j]", f"{name}[i, 1]"]
    return st.sampled_from(found)


@st.composite
def integers(draw: st.DrawFn, first: str, second: str, depth: int) -> str:
    """An expression that is an integer."""
    if not depth:
        return draw(leaves(first, second, whole=True))
    one, other = draw(integers(first, second, depth - 1)), draw(integers(first, second, depth - 1))
    wide = "uint64" in (first, second)
    form = draw(st.sampled_from(["+", "-", "*", "&", "|", "^", "min", "max", "//", "%", "<<", "choice", "cast", "abs", "~",
                                 *([] if wide else [">>"])]))
    if form in ("min", "max"):
        return f"T.{form}({one}, {other})"
    if form in ("//", "%", "<<", ">>"):
        return f"({one} {form} {draw(st.sampled_from([1, 2, 3, 4, 8]))})"
    if form == "choice":
        return f"T.if_then_else({draw(conditions(first, second, depth - 1))}, {one}, {other})"
    if form == "cast":
        return f"T.cast(i + {one}, {draw(st.sampled_from(INTEGERS))!r})"
    if form in ("abs", "~"):
        return f"T.abs({one})" if form == "abs" else f"(~(j + {one}))"
    return f"({one} {form} {other})"


@st.composite
def floats(draw: st.DrawFn, first: str, second: str, depth: int) -> str:
    """An expression that is a float."""
    if not depth:
        return draw(leaves(first, second, whole=False))
    one, other = draw(floats(first, second, depth - 1)), draw(floats(first, second, depth - 1))
    form = draw(st.sampled_from(["+", "-", "*", "min", "max", "choice", "cast", "from an integer"]))
    if form in ("min", "max"):
        return f"T.{form}({one}, {other})"
    if form == "choice":
        return f"T.if_then_else({draw(conditions(first, second, depth - 1))}, {one}, {other})"
    if form == "cast":
        return f"T.cast(i + {one}, {draw(st.sampled_from(FLOATS))!r})"
    if form == "from an integer":
        return f"T.cast(j + {draw(integers(first, second, depth - 1))}, {draw(st.sampled_from(FLOATS))!r})"
    return f"({one} {form} {other})"


@st.composite
def conditions(draw: st.DrawFn, first: str, second: str, depth: int) -> str:
    """A comparison of two integers, or of two floats."""
    side = draw(st.sampled_from([integers, integers, floats]))
    sign = draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
    return f"({draw(side(first, second, depth))} {sign} {draw(side(first, second, depth))})"


@st.composite
def statements(draw: st.DrawFn) -> tuple[str, str, str, str]:
    """The types of the two inputs and of the result, and the expression that is stored; the index makes it no constant."""
    first, second, third = (draw(st.sampled_from((*INTEGERS, *FLOATS))) for _ in range(3))
    side = draw(st.sampled_from([integers, integers, floats]))
    return first, second, third, f"i + {draw(side(first, second, draw(st.integers(1, 3))))}"


def element_type(kind: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)


def elements(rng: np.random.Generator, kind: str) -> Any:
    """Elements of a type, a third of them at its ends or at those of narrower types."""
    held, shape = element_type(kind), (ROWS, COLUMNS)
    if kind in INTEGERS:
        low, high = int(np.iinfo(held).min), int(np.iinfo(held).max)
        made = rng.integers(low, high, shape, held, endpoint=True)
        ends = [low, low + 1, high - 1, high, 0, 1, 2, 7, -1, 127, 128, 255, 256, 2**31 - 1, 2**31, 2**32 - 1, 100000]
        special = np.array([end for end in ends if low <= end <= high], held)
    else:
        made = (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 7, shape)).astype(np.float32)
        special = np.array([0, -0.0, 0.5, 1.5, -2.5, 127.5, 255.5, -3, 250, 65535.5, 2.0**31, 2.0**63, np.inf, -np.inf, np.nan],
                           np.float32)
    with np.errstate(all="ignore"):
        return np.where(rng.random(shape) < 0.3, special[rng.integers(0, special.size, shape)], made).astype(held)


@pytest.mark.filterwarnings("ignore:.*(rounds to 0|overflow|invalid value)")
@settings(max_examples=EXPRESSIONS, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(statements(), st.sampled_from(["npuir", "ascendc"]), st.sampled_from([3, -5, 100000, 2**31 - 1, -(2**31)]))
def test_expressions(tmp_path: Path, drawn: tuple[str, str, str, str], dialect: str, n: int) -> None:
    first, second, third, value = drawn
    configs = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True} if dialect == "ascendc" else {}
    rng = np.random.default_rng(0)
    x, y = elements(rng, first), elements(rng, second)
    for loops, off in ((PARALLEL, []), (PARALLEL, ["vectorise-parallel"]), (SERIAL, [])):
        text = TEXT.format(first=first, second=second, third=third, value=value, rows=ROWS, columns=COLUMNS,
                           loops=loops.format(rows=ROWS, columns=COLUMNS))
        path = tmp_path / f"kernel_{abs(hash(text))}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        try:
            kernel = tilelang.compile(module.make(), target=dialect, pass_configs={**configs, "tl.disable": off})
        except tilelang.TileError as error:
            if error.code == "T110":  # a number that its type does not have
                return
            raise
        found, wanted = (np.zeros((ROWS, COLUMNS), element_type(third)) for _ in range(2))
        with np.errstate(all="ignore"):
            kernel(x, y, found, n)
            kernel.interpret(x, y, wanted, n)
        if third in FLOATS:
            found, wanted = found.astype(np.float64), wanted.astype(np.float64)
        np.testing.assert_array_equal(found, wanted, f"{first}, {second} to {third}, {dialect}: {value}")
