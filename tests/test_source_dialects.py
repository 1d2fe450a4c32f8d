"""The source dialects: each can be selected by a caller, and the trace follows the rules of a traced dialect."""

from __future__ import annotations

from typing import get_args

import pytest

import tilelang_npu.language as T
from tilelang_npu.errors import TileError
from tilelang_npu.frontend import trace
from tilelang_npu.source_dialects import RequestedDialect, SourceDialect, TracedDialect

RULES = {"npuir": "npuir", "ascendc": "ascendc", "gpu": "npuir"}
"""The traced dialect of each source dialect."""


@T.prim_func
def of_npuir(X: T.Tensor((8, 64), "float32")):
    with T.Kernel(1) as cid:
        x = T.alloc_shared((8, 64), "float32")
        T.copy(X, x)
        T.vadd(x, x, x)
        T.copy(x, X)


@T.prim_func
def of_ascendc(X: T.Tensor((8, 64), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        x = T.alloc_ub((8, 64), "float32")
        T.copy(X, x)
        T.tile.add(x, x, x)
        T.copy(x, X)


def test_the_larger_sets_contain_the_smaller_ones() -> None:
    assert set(get_args(TracedDialect)) == set(RULES.values())
    assert set(get_args(SourceDialect)) == set(RULES)
    assert set(get_args(RequestedDialect)) == {*RULES, "auto"}


@pytest.mark.parametrize("dialect", get_args(SourceDialect))
def test_a_kernel_is_traced_by_the_rules_of_its_dialect(dialect: SourceDialect) -> None:
    kernel = of_ascendc if dialect == "ascendc" else of_npuir
    assert trace(kernel, dialect=dialect).dialect == RULES[dialect]


@pytest.mark.parametrize(("kernel", "dialect"), [(of_npuir, "npuir"), (of_ascendc, "ascendc")], ids=["npuir", "ascendc"])
def test_operations_determine_the_dialect_of_auto(kernel: T.PrimFunc, dialect: TracedDialect) -> None:
    assert trace(kernel, dialect="auto").dialect == dialect


def test_another_name_is_an_error_that_names_it() -> None:
    with pytest.raises(TileError, match="cuda"):
        trace(of_npuir, dialect="cuda")  # type: ignore[arg-type]
