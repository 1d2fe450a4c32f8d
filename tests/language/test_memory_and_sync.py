"""Allocations and their memories, flags and barriers."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(("statement", "expected"), [
    ("new = T.alloc_ub((8, 16), 'float32')", '%new = tile.alloc "new" : memref<8x16xf32, #hivm.address_space<ub>>'),
    ("new = T.alloc_ub([8, 16], T.float16)", '%new = tile.alloc "new" : memref<8x16xf16, #hivm.address_space<ub>>'),
    ("new = T.alloc_ub(8, 'float')", '%new = tile.alloc "new" : memref<8xf32, #hivm.address_space<ub>>'),
    ("new = T.alloc_shared((8), 'int8')", '%new = tile.alloc "new" : memref<8xi8, #tile.scope<shared>>'),
    ("new = T.alloc_shared((8,), 'int8', scope='shared.l1')",
     '%new = tile.alloc "new" : memref<8xi8, #hivm.address_space<cbuf>>'),
    ("new = T.alloc_fragment((8, 8), 'float32')", '%new = tile.alloc "new" : memref<8x8xf32, #tile.scope<fragment>>'),
    ("new = T.alloc_L1((8, 8), 'bfloat16')", '%new = tile.alloc "new" : memref<8x8xbf16, #hivm.address_space<cbuf>>'),
    ("new = T.alloc_L0A((2, 8, 8), 'float16')", '%new = tile.alloc "new" : memref<2x8x8xf16, #hivm.address_space<ca>>'),
    ("new = T.alloc_L0B((8, 8), 'float16')", '%new = tile.alloc "new" : memref<8x8xf16, #hivm.address_space<cb>>'),
    ("new = T.alloc_L0C((8, 8), 'float32')", '%new = tile.alloc "new" : memref<8x8xf32, #hivm.address_space<cc>>'),
    ("new = T.alloc_local((4,), 'float32')", '%new = tile.alloc "new" : memref<4xf32, #tile.scope<local>>'),
    ("new = T.alloc_ub((8,), 'bool')", '%new = tile.alloc "new" : memref<8xi1, #hivm.address_space<ub>>'),
    ("new = T.alloc_ub((8,), 'uint16')", '%new = tile.alloc "new" : memref<8xui16, #hivm.address_space<ub>>'),
    ("new = T.alloc_ub((8,), 'float8_e4m3fn')", '%new = tile.alloc "new" : memref<8xf8E4M3FN, #hivm.address_space<ub>>'),
    ("new = T.alloc_ub((T.ceildiv(30, 4), 2 * 4), 'int64')",
     '%new = tile.alloc "new" : memref<8x8xi64, #hivm.address_space<ub>>'),
    ("size = 4\nnew = T.alloc_ub((size,), 'int64')\nT.annotate_address({new: 1024, a: 0})",
     '%new = tile.alloc "new" at 1024 : i64 : memref<4xi64, #hivm.address_space<ub>>'),
])
def test_allocations(kernel: Any, statement: str, expected: str) -> None:
    kernel(statement).has(expected)


def test_a_buffer_is_named_by_its_first_assignment(kernel: Any) -> None:
    made = kernel("first = T.alloc_ub((8,), 'int8')\nsecond = first\npair = (T.alloc_ub((8,), 'int8'), first)")
    labels = [op.label.data for op in made.ops("tile.alloc")][-2:]
    assert labels == ["first", "pair_0"]


@pytest.mark.parametrize(("statement", "code", "message"), [
    ("T.alloc_shared((8,), 'int8', scope='global')", "T160", "there is no scope 'global'"),
    ("T.alloc_ub((), 'int8')", "T150", "at least one axis"),
    ("T.alloc_ub((-8,), 'int8')", "T150", "size -8 of axis 0 is negative"),
    ("T.alloc_ub((8, n), 'int8')", "T111", "of axis 1 is not a constant; on-chip shapes must be constant"),
    ("T.alloc_ub(('8',), 'int8')", "T111", "size '8' of axis 0 is not an integer"),
    ("T.alloc_var('int32', 1, 2)", "T145", "takes one initial value, not 2"),
    ("T.annotate_address({a: -4})", "T162", "-4 is not a byte address for a"),
    ("T.annotate_address({3: 0})", "T162", "3 is not a buffer that the kernel allocates"),
])
def test_bad_allocations(kernel: Any, refused: Any, statement: str, code: str, message: str) -> None:
    with refused(code, at=statement, message=message):
        kernel(statement)


@pytest.mark.parametrize(("statement", "expected"), [
    ("T.barrier_all()", "hivm.hir.pipe_barrier[<PIPE_ALL>]"),
    ("T.pipe_barrier('v')", "hivm.hir.pipe_barrier[<PIPE_V>]"),
    ("T.pipe_barrier('PIPE_MTE2')", "hivm.hir.pipe_barrier[<PIPE_MTE2>]"),
    ("T.set_flag('mte2', 'v', 3)", "hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]"),
    ("T.wait_flag('MTE2', 'V', event_id=0)", "hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]"),
    ("with T.rs('PIPE_MTE2'):\n    T.set_flag('V', 1)", "hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID1>]"),
    ("with T.rs('PIPE_V'):\n    T.wait_flag('PIPE_MTE2')", "hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]"),
    ("T.set_flag('mte2', 'v', cid % 8)", "hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, %1]"),
    ("T.set_flag('mte2', 'v', n)", "hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, %1]"),
])
def test_flags_and_barriers(kernel: Any, statement: str, expected: str) -> None:
    kernel(statement).has(expected)


@pytest.mark.parametrize(("statement", "message"), [
    ("T.set_flag('mte2', 'v', 'm', 0)", r"takes \(src, dst, event\)"),
    ("T.set_flag(0, 'mte2', 'v')", r"takes \(src, dst, event\)"),
    ("T.set_flag('all', 'v', 0)", "not ALL to V"),
    ("T.wait_flag('mte2', 'v', -1)", "there is no event -1; events are 0 to 15"),
    ("T.pipe_barrier(3)", "there is no pipe 3"),
])
def test_bad_flags(kernel: Any, refused: Any, statement: str, message: str) -> None:
    with refused("T161", at=statement, message=message):
        kernel(statement)
