"""``breakpoint()`` in a trace: what a debugger is to see is what has a name there."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

from tilelang_npu import TileError
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.tile.calls import facts_of
from tilelang_npu.frontend import trace

KERNEL = """\
import pdb
import tilelang_npu.language as T

rows = 8

@T.macro
def inside(x, factor):
    breakpoint()

@T.prim_func
def main(A: T.Tensor((8, 64), "float32"), n: T.int32, B: T.Tensor((8, 64), "float32")):
    with T.Kernel(2, is_npu=True) as (bx, vid):
        a = T.alloc_ub((8, 64), "float32")
        b = T.alloc_ub((8, 64), "float32")
        both = [a, b]
        v = T.alloc_var("float32", init=0.0)
        tile = 4
"""


def traced(source: Any, body: str) -> tuple[list[str], dict[str, Any]]:
    """The tiles that are looked at in front of the only stop, and its facts."""
    module = trace(source(KERNEL + textwrap.indent(body, "        ") + "\n").main).module
    looks = [op.called.data for op in module.walk() if isinstance(op, tile.LookOp)]
    (stop,) = (op for op in module.walk() if isinstance(op, tile.BreakpointOp))
    return looks, facts_of(stop.attributes) | {"count": len(stop.operands)} | {
        name: held.data for name, held in stop.properties.items() if hasattr(held, "data") and isinstance(held.data, str)}


def held(facts: dict[str, Any], name: str) -> Any:
    return json.loads(str(facts.get(name) or "{}"))


def test_all_that_has_a_name_is_seen_and_what_nothing_wrote_is_said(source: Any) -> None:
    looks, facts = traced(source, "T.copy(A, a)\nhalf = n * 2\nbreakpoint()\nT.copy(a, B)")
    assert sorted(looks) == ["a", "both[0]"]
    assert held(facts, "unwritten").keys() == {"b", "both[1]"}
    assert held(facts, "tensors") == {"A": 0, "B": 2}
    assert held(facts, "constants")["tile"] == 4
    names = str(facts["names"]).split(",")
    assert {"half", "n", "v", "bx", "vid"} <= set(names)
    assert facts["count"] == 1 + len(names)  # the block's index, and each number
    assert facts["function"] == "main"
    assert facts["sub_block"] == "vid"


def test_a_part_that_is_written_makes_a_tile_seen(source: Any) -> None:
    looks, facts = traced(source, "T.copy(A[0:2, :], b[2:4, :])\nbreakpoint()\nT.copy(b, B)")
    assert sorted(looks) == ["b", "both[1]"]
    assert "b" not in held(facts, "unwritten")


def test_a_macro_has_its_own_names(source: Any) -> None:
    looks, facts = traced(source, "T.copy(A, a)\ninside(a, 3)\nT.copy(a, B)")
    assert looks == ["x"]
    assert held(facts, "constants")["factor"] == 3
    assert facts["function"] == "inside"
    assert "tensors" not in facts or not held(facts, "tensors")


@pytest.mark.parametrize(("body", "code", "said"), [
    ("breakpoint(1)", "T145", "takes no arguments"),
    ("for i, j in T.Parallel(8, 64):\n    breakpoint()\n    a[i, j] = 0.0", "T141", "cannot stand inside T.Parallel"),
    ("pdb.set_trace()", "T144", "pdb.set_trace stops where it is called"),
])
def test_stops_that_cannot_be(source: Any, body: str, code: str, said: str) -> None:
    with pytest.raises(TileError, match=said) as caught:
        traced(source, body)
    assert caught.value.code == code
    assert caught.value.location is not None
    assert caught.value.location.line > KERNEL.count("\n")
