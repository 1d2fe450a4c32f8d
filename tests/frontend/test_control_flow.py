"""Loops, branches and variables: which become ``scf``, and which Python evaluates."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import IntegerAttr, UnitAttr

import tilelang_npu.language as T
from tilelang_npu.dialects import tile


def test_loops(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            for i in T.serial(8):
                a[i] = 0
            for j in T.serial(2, n):
                a[j] = 1
            for k in range(1, 9, 2):
                a[k] = 2
            for p in T.Pipelined(8, num_stages=3):
                a[p] = 3
            for q in T.Pipelined(8):
                a[q] = 4
            for u in T.unroll(4):
                a[u] = 5
            for r in range(a[0]):
                a[r] = 6

    kernel = traced(main)
    kernel.has("scf.for %i = %c0 to %c8 step %c1", "arith.index_cast %n", "scf.for %j = %c2 to",
               "scf.for %k = %c1_1 to %c9 step %c2",
               "scf.for %p = ", "tile.num_stages = 3", "scf.for %q", "scf.for %u", "tile.unroll", "memref.load %a[%c0]",
               "scf.for %r = %c0 to")
    serial, _, _, piped, plain, unrolled, _ = kernel.ops("scf.for")
    assert isinstance(piped.attributes[tile.NUM_STAGES], IntegerAttr)
    assert tile.stages_of(piped) == 3
    assert not plain.attributes
    assert not serial.attributes
    assert unrolled.attributes[tile.UNROLL] == UnitAttr()


def test_parallel_loops(traced: Any) -> None:
    M = T.symbolic("M")

    @T.prim_func
    def main(A: T.Tensor((M, 8), "float32"), B: T.Tensor((64, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64, 8), "float32")
            for i, j in T.Parallel(64, 8):
                a[i, j] = A[i, j] * 2.0
            for (i, j) in T.Parallel(M, 8):
                value = A[i, j]
                A[i, j] = value + 1
            for k in T.Parallel(64):
                if k < 32:
                    a[k, 0] = 1
                else:
                    a[k, 0] = 2

    kernel = traced(main)
    first, second, third = kernel.ops("tile.parallel")
    assert list(first.static_extents.get_values()) == [64, 8]
    assert [argument.name_hint for argument in first.body.block.args] == ["i", "j"]
    assert second.extents[0].name_hint == "M"
    assert [op.name for op in third.body.block.ops if op.name != "arith.constant"] == ["arith.cmpi", "scf.if"]


def test_branches(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            if n > 8:
                a[0] = 1
            elif n > 4:
                a[0] = 2
            else:
                a[0] = 3
            if n:
                pass

    kernel = traced(main)
    outer, inner, lonely = kernel.ops("scf.if")
    assert inner.parent_op() is outer
    assert len(inner.false_region.blocks) == 1
    assert not lonely.false_region.blocks
    assert [op.name for op in lonely.true_region.block.ops] == ["scf.yield"]
    stores = [constant.value.owner.value.value.data for constant in kernel.ops("memref.store")]
    assert stores == [1, 2, 3]


def test_python_decides_what_python_knows(traced: Any) -> None:
    causal, size, mode = False, 64, "left"

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            if causal:
                raise ValueError("never reached")
            if mode == "left" and size >= 64:
                a[0] = 1
            else:
                T.does_not_exist(a)
            if causal or n > 3:
                a[0] = 2
            while causal:
                T.does_not_exist(a)
            assert size == 64, "must hold"

    kernel = traced(main)
    assert kernel.names() == ["tile.alloc", "memref.store", "arith.cmpi", "scf.if", "memref.store", "scf.yield"]


def test_while_and_variables(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            count = T.alloc_var("int32", init=n)
            flag = T.alloc_var("bool", True)
            sum_ = T.alloc_var("float32")
            while count > 0 and flag:
                count = count - 1
                sum_ += count
                for i in range(3):
                    count -= i
                if count < n:
                    flag = False
            copied = count
            count = 0
            A[0] = copied

    kernel = traced(main)
    kernel.has('%count = tile.alloc "count" : memref<1xi32, #tile.scope<local>>', "memref.store %n, %count[%c0]",
               '%flag = tile.alloc "flag" : memref<1xi1, #tile.scope<local>>', "memref.store %true, %flag[%c0]",
               "memref.load %count", "memref.store", "scf.while", "memref.load %goes_on", "scf.condition", "} do {",
               "memref.store", "arith.sitofp", "arith.addf", "memref.store",
               "scf.for", "memref.load %count", "memref.store", "scf.if", "memref.store %false, %flag",
               "memref.load %count", "arith.andi", "memref.store %20, %goes_on", "scf.yield", "}",
               "%copied = memref.load %count", "memref.store %c0_i32, %count", "memref.store %copied, %A")
    assert len(kernel.ops("memref.load")) == 11


def test_a_variable_is_also_a_buffer_of_one_element(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            v = T.alloc_var("int32", 3, "local.var")
            v[0] = v[0] + 1
            A[v] = v

    kernel = traced(main)
    assert len(kernel.ops("memref.store")) == 3
    assert len(kernel.ops("memref.load")) == 3


def test_scopes_of_a_core(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "int32")
            with T.Scope("C"):
                pass
            with T.Scope("Vector"), T.Scope("V"):
                T.fill(a, 0)

    kernel = traced(main)
    assert [op.core.data for op in kernel.ops("tile.on_core")] == ["cube", "vector", "vector"]
    assert kernel.only("tile.fill").parent_op() is kernel.ops("tile.on_core")[2]


def test_chained_and_unpacked_assignments(traced: Any) -> None:
    def task(count: Any) -> Any:
        return count // 4, count % 4

    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(8, is_npu=True) as (cid, vid):
            a = b = T.alloc_ub((64,), "int32")
            row, column = cid // 2, cid % 2
            (start, count), name = task(cid), "text"
            T.fill(a[row * 2 + column : row * 2 + column + 4], start + count + len(name))
            T.fill(b, 0)

    kernel = traced(main)
    assert len(kernel.ops("tile.alloc")) == 1
    assert tile.shape_of(kernel.ops("tile.fill")[0].target) == (4,)
