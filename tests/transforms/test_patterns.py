"""Every rewrite pattern alone: the form that it rewrites, and similar forms that must not change."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

import tilelang_npu.transforms
from tilelang_npu.analysis.buffers import root_of
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.text import parse_module, print_module, verify_module
from tilelang_npu.errors import TileError
from tilelang_npu.ops import Structured, operations
from tilelang_npu.plugins import register_op
from tilelang_npu.plugins.registry import temporary
from tilelang_npu.transforms.hivm.tidy import EraseLoopThatNeverRuns, EraseUnusedOperation, MergeEqualOperations
from tilelang_npu.transforms.infra.expand_fills import ExpandScalarStorageFill, ExpandTensorFill
from tilelang_npu.transforms.infra.patterns import apply_patterns
from tilelang_npu.transforms.lower import calls
from tilelang_npu.transforms.lower.lower_to_hivm import LowerToHivm
from tilelang_npu.transforms.tile.assign_cores import AssignCores
from tilelang_npu.transforms.tile.collapse_copies import MergeCopiedBuffers
from tilelang_npu.transforms.tile.drop_dead_stores import EraseOverwrittenStore
from tilelang_npu.transforms.tile.drop_unread_scratch import EraseUnreadScratch
from tilelang_npu.transforms.tile.expand_composites import (
    ExpandAbsoluteReduction,
    ExpandComposite,
    ExpandTensorCopy,
    ExpandTensorTransfer,
)
from tilelang_npu.transforms.tile.fold_accumulator_clear import EraseDeadClear, FoldClearIntoInit, ReplaceClearByZeroProduct
from tilelang_npu.transforms.tile.fuse_fixpipe import FuseStepsIntoProductStore
from tilelang_npu.transforms.tile.legalise_types import (
    ShiftUnsignedAsSigned,
    WidenElementwise,
    WidenReduction,
    WidenRounding,
)
from tilelang_npu.transforms.tile.split_conversions import SplitConvertingLoad, SplitConvertingStore

SHORT = re.compile(r"\b(gm|ub|cbuf|ca|cc|shared|fragment|local)<([^>]*)>")
"""Types are short in this file: ``ub<8xf32>`` is a memref in UB, ``shared<8xf32>`` one whose memory is open."""


def parse(body: str) -> ModuleOp:
    """A module with a function of this body."""
    def memref(match: re.Match[str]) -> str:
        space, shape = match.groups()
        attribute = f"#hivm.address_space<{space}>" if space in ("gm", "ub", "cbuf", "ca", "cc") else f"#tile.scope<{space}>"
        return f"memref<{shape}, {attribute}>"

    text = f"""
        func.func @k(%X: gm<8x64xf32>, %Y: gm<8x64xf32>, %n: i32, %i: index, %j: index, %cond: i1) {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c4 = arith.constant 4 : index
          %no = arith.constant false
          %zero = arith.constant 0.0 : f32
          %one = arith.constant 1.0 : f32
          {body}
          return
        }}"""
    return parse_module(SHORT.sub(memref, text))


def written(module: ModuleOp) -> list[str]:
    """The lines of a function without its constants and allocations of the test's own, and without types."""
    lines = [line.strip().partition(" : ")[0] for line in print_module(module).splitlines()]
    start = next(number for number, line in enumerate(lines) if line.startswith("func.func"))
    given = {"%c0", "%c1", "%c4", "%no", "%zero", "%one"}
    return [line for line in lines[start + 1:] if line not in ("return", "}", "") and line.partition(" ")[0] not in given]


def alloc(**buffers: str) -> str:
    return "".join(f'%{name} = tile.alloc "{name}" : {kind}\n' for name, kind in buffers.items())


def copy(source: str, source_type: str, target: str, target_type: str, more: str = "") -> str:
    return f"tile.copy %{source} to %{target} {more}: {source_type} to {target_type}\n"


def elementwise(name: str, inputs: Sequence[str], types: Sequence[str], target: str, target_type: str, more: str = "") -> str:
    return (f'tile.elementwise "{name}" ins({", ".join(f"%{each}" for each in inputs)} : {", ".join(types)}) '
            f"outs(%{target} : {target_type}){more}\n")


def fill(value: str, element: str, target: str, target_type: str) -> str:
    return f"tile.fill %{value} into %{target} : {element} into {target_type}\n"


T, G = "shared<8x64xf32>", "gm<8x64xf32>"
UB, HALF = "ub<8x64xf32>", "shared<8x64xf16>"
LOAD, CLEAR, STORE = copy("X", G, "x", T), fill("zero", "f32", "x", T), copy("x", T, "Y", G)
X = alloc(x=T)
SCRATCH = f"tile.scratch %x : {T}\n"
AB = alloc(a=T, b=T)
ACC = "cc<32x32xf32>"
GEMM = f"tile.gemm %a, %b into %c init %no : cbuf<32x16xf16>, cbuf<16x32xf16> into {ACC}\n"
L0C = alloc(a="cbuf<32x16xf16>", b="cbuf<16x32xf16>", c=ACC, d="gm<32x32xf32>")
CLEAR_C, STORE_C = fill("zero", "f32", "c", ACC), copy("c", ACC, "d", "gm<32x32xf32>")
P = "fragment<32x32xf32>"
PRODUCT = alloc(a="shared<32x16xf16>", b="shared<16x32xf16>", c=P, C="gm<32x32xf32>", H="gm<32x32xf16>") + (
    f"tile.gemm %a, %b into %c init %no : shared<32x16xf16>, shared<16x32xf16> into {P}\n")
RELU = alloc(u="shared<32x32xf32>") + elementwise("relu", ["c"], [P], "u", "shared<32x32xf32>")
STORE_U = copy("u", "shared<32x32xf32>", "C", "gm<32x32xf32>")


def transfer(name: str, source: str, source_type: str, target: str, target_type: str) -> str:
    return f'tile.call "{name}" ins(%{source}, %i : {source_type}, index) outs(%{target} : {target_type})\n'


def loop(body: str, last: str = "c4", results: str = "") -> str:
    return f"{results}scf.for %k = %c0 to %{last} step %c1 {{\n{body}}}\n"


def pipelined(body: str) -> str:
    return f"scf.for %k = %c0 to %c4 step %c1 {{\n{body}}} {{tile.num_stages = 2 : i64}}\n"


def under(body: str) -> str:
    return f"scf.if %cond {{\n{body}}}\n"


def accumulators(module: ModuleOp) -> set[Any]:
    return {root_of(op.c) for op in module.walk() if isinstance(op, tile.GemmOp)}


MADE: dict[type[RewritePattern], Callable[[ModuleOp], RewritePattern]] = {
    EraseOverwrittenStore: EraseOverwrittenStore,
    EraseUnreadScratch: EraseUnreadScratch,
    MergeCopiedBuffers: lambda module: MergeCopiedBuffers(module, accumulators(module)),
    FuseStepsIntoProductStore: lambda module: FuseStepsIntoProductStore(module, accumulators(module)),
    EraseDeadClear: lambda module: EraseDeadClear(Ranges()),
    FoldClearIntoInit: lambda module: FoldClearIntoInit(module, Ranges()),
    ReplaceClearByZeroProduct: lambda module: ReplaceClearByZeroProduct(module, Ranges(), explain=True),
    SplitConvertingLoad: SplitConvertingLoad,
    SplitConvertingStore: SplitConvertingStore,
    ExpandTensorFill: lambda module: ExpandTensorFill(by_hand=False),
    ExpandTensorCopy: lambda module: ExpandTensorCopy(by_hand=False),
    ExpandTensorTransfer: lambda module: ExpandTensorTransfer(by_hand=False),
    **{kind: lambda module, kind=kind: kind() for kind in (  # type: ignore[misc]
        ExpandComposite, ExpandAbsoluteReduction, ExpandScalarStorageFill, ShiftUnsignedAsSigned, WidenElementwise,
        WidenRounding, WidenReduction, MergeEqualOperations, EraseLoopThatNeverRuns, EraseUnusedOperation)},
}
"""A function that creates a pattern for a module."""

NARROW, N = alloc(x="ub<8x64xbf16>"), "ub<8x64xbf16>"
LOAD_N, STORE_N = copy("X", G, "x", N), copy("x", N, "Y", G)
CUBE = "{hivm.tcore_type = #hivm.tcore_type<CUBE>}"
S8, U8 = "ub<8xi16>", "ub<8xui16>"
REWRITTEN: list[tuple[type[RewritePattern], str, list[str]]] = [
    (EraseOverwrittenStore, X + CLEAR + LOAD + STORE,
     ["tile.copy %X to %x", "tile.copy %x to %Y"]),
    (EraseUnreadScratch, X + LOAD + SCRATCH, ["tile.copy %X to %x"]),
    (MergeCopiedBuffers, AB + copy("X", G, "a", T) + copy("a", T, "b", T) + copy("b", T, "Y", G),
     ["tile.copy %X to %b", "tile.copy %b to %Y"]),
    (FuseStepsIntoProductStore, PRODUCT + RELU + STORE_U, ["tile.gemm %a, %b into %c init %no", "tile.copy %c to %C relu"]),
    (FuseStepsIntoProductStore,
     PRODUCT + alloc(u="shared<32x32xf16>") + copy("c", P, "u", "shared<32x32xf16>") + copy(
         "u", "shared<32x32xf16>", "H", "gm<32x32xf16>"),
     ["tile.gemm %a, %b into %c init %no", 'tile.copy %c to %H round "rint"']),
    (EraseDeadClear, L0C + GEMM + STORE_C + CLEAR_C, ["tile.gemm %a, %b into %c init %no", "tile.copy %c to %d"]),
    (FoldClearIntoInit, L0C + CLEAR_C + GEMM + STORE_C,
     ["%0 = arith.constant true", "tile.gemm %a, %b into %c init %0", "tile.copy %c to %d"]),
    (FoldClearIntoInit, L0C + CLEAR_C + loop(GEMM) + STORE_C,
     ["scf.for %k = %c0 to %c4 step %c1 {", "%0 = arith.cmpi eq, %k, %c0", "tile.gemm %a, %b into %c init %0",
      "tile.copy %c to %d"]),
    (SplitConvertingLoad, NARROW + pipelined(LOAD_N),
     ['%x_1 = tile.alloc "x"', "scf.for %k = %c0 to %c4 step %c1 {", "tile.copy %X to %x", "tile.copy %x to %x_1",
      "} {tile.num_stages = 2"]),
    (SplitConvertingStore, NARROW + pipelined(STORE_N),
     ['%x_1 = tile.alloc "x"', "scf.for %k = %c0 to %c4 step %c1 {", "tile.copy %x_1 to %x", "tile.copy %x to %Y",
      "} {tile.num_stages = 2"]),
    (ReplaceClearByZeroProduct, L0C + CLEAR_C + STORE_C,
     ["%0 = arith.constant 0.000000e+00", "%1 = arith.constant true", '%zeros_left = tile.alloc "zeros_left"',
      '%zeros_right = tile.alloc "zeros_right"', f"tile.fill %0 into %zeros_left {CUBE}",
      f"tile.fill %0 into %zeros_right {CUBE}",
      f"hivm.hir.pipe_barrier[<PIPE_ALL>] {CUBE}", f"tile.gemm %zeros_left, %zeros_right into %c init %1 {CUBE}",
      f"hivm.hir.pipe_barrier[<PIPE_ALL>] {CUBE}", "tile.copy %c to %d"]),
    (ExpandComposite, alloc(x=UB) + elementwise("clamp", ["x", "zero", "one"], [UB, "f32", "f32"], "x", UB),
     ['tile.elementwise "max" ins(%x, %zero', 'tile.elementwise "min" ins(%x, %one']),
    (ExpandAbsoluteReduction, alloc(x=UB, m="ub<8x1xf32>") + (
        f'tile.reduce "reduce_max" absolute ins(%x : {UB}) outs(%m : ub<8x1xf32>) dims = [1]\n'),
     ['%absolute = tile.alloc "absolute" {tile.scratch}',
      'tile.elementwise "abs" ins(%x', 'tile.reduce "reduce_max" ins(%absolute']),
    (ExpandTensorFill, fill("zero", "f32", "Y", G),
     ['%Y_fill = tile.alloc "Y_fill"', "tile.fill %zero into %Y_fill", "%0 = tile.region %Y[0, 0] [8, 64] keep [0, 1]",
      "tile.copy %Y_fill to %0"]),
    (ExpandTensorCopy, copy("X", G, "Y", G),
     ['%X_to_Y = tile.alloc "X_to_Y"', "tile.copy %X to %X_to_Y", "tile.copy %X_to_Y to %Y"]),
    (ExpandTensorTransfer, transfer("shmem_put_nbi", "X", G, "Y", G),
     ['%X_to_Y = tile.alloc "X_to_Y"', "tile.copy %X to %X_to_Y", 'tile.call "shmem_ub_put_nbi" ins(%X_to_Y, %i']),
    (ExpandScalarStorageFill, alloc(s="local<4xf32>") + fill("one", "f32", "s", "local<4xf32>"),
     ["%0 = arith.constant 4", "%1 = arith.constant 0", "%2 = arith.constant 1",
      "scf.for %3 = %1 to %0 step %2 {", "memref.store %one, %s[%3]"]),
    (ShiftUnsignedAsSigned, alloc(x=U8, y=U8) + "%t = arith.trunci %n : i32 to i16\n"
     "%u = builtin.unrealized_conversion_cast %t : i16 to ui16\n" + elementwise(
        "bitwise_rshift", ["x", "u"], [U8, "ui16"], "y", U8, " {is_signed = false, round = false}"),
     ["%t = arith.trunci %n", "%0 = tile.view %x", "%1 = tile.view %y",
      'tile.elementwise "bitwise_rshift" ins(%0, %t']),
    (WidenElementwise, alloc(x="ub<8xbf16>") + elementwise("exp", ["x"], ["ub<8xbf16>"], "x", "ub<8xbf16>"),
     ['%wide = tile.alloc "wide" {tile.scratch}', "tile.copy %x to %wide",
      '%wide_1 = tile.alloc "wide" {tile.scratch}', 'tile.elementwise "exp" ins(%wide', "tile.copy %wide_1 to %x"]),
    (WidenRounding, alloc(x="ub<8xf16>") + elementwise(
        "cast", ["x"], ["ub<8xf16>"], "x", "ub<8xf16>", ' {round_mode = "floor"}'),
     ['%wide = tile.alloc "wide" {tile.scratch}', "tile.copy %x to %wide",
      '%wide_1 = tile.alloc "wide" {tile.scratch}', 'tile.elementwise "cast" ins(%wide', "tile.copy %wide_1 to %x"]),
    (WidenReduction, alloc(x="ub<8x64xbf16>", m="ub<8x1xf32>") + (
        'tile.reduce "reduce_sum" ins(%x : ub<8x64xbf16>) outs(%m : ub<8x1xf32>) dims = [1]\n'),
     ['%wide = tile.alloc "wide" {tile.scratch}', "tile.copy %x to %wide",
      'tile.reduce "reduce_sum" ins(%wide']),
    (MergeEqualOperations, "%a = arith.addi %i, %j : index\n%b = arith.addi %i, %j : index\n"
     "%s = arith.muli %a, %b : index\n", ["%a = arith.addi %i, %j", "%s = arith.muli %a, %a"]),
    (MergeEqualOperations, "%a = arith.addi %i, %j : index\n" + under("%b = arith.addi %i, %j : index\n"
     "%m = memref.load %X[%b, %b] : gm<8x64xf32>\n"),
     ["%a = arith.addi %i, %j", "scf.if %cond {", "%m = memref.load %X[%a, %a]"]),
    (EraseLoopThatNeverRuns, f"%r = scf.for %k = %c4 to %c4 step %c1 iter_args(%a = %zero) -> (f32) {{\n"
     f"scf.yield %one : f32\n}}\nmemref.store %r, %X[%i, %j] : {G}\n", ["memref.store %zero, %X[%i, %j]"]),
    (EraseUnusedOperation, "%a = arith.addi %i, %j : index\n", []),
    (EraseUnusedOperation, under("%a = arith.addi %i, %j : index\n"), []),
]
REMOVED: dict[type[RewritePattern], list[str]] = {
    MergeCopiedBuffers: ['%a = tile.alloc "a"'],
    FuseStepsIntoProductStore: ['%u = tile.alloc "u"'],
}
"""The buffers that a pattern removes."""
LEFT: list[tuple[type[RewritePattern], str, str]] = [
    (EraseUnreadScratch, "read in the next iteration", X + loop(STORE + SCRATCH)),
    (EraseUnreadScratch, "with an address", f'%x = tile.alloc "x" at 0 : i64 : {UB}\ntile.scratch %x : {UB}\n'),
    (EraseOverwrittenStore, "read before it is overwritten", X + CLEAR + STORE + LOAD),
    (EraseOverwrittenStore, "the author's memory", alloc(x=UB) + fill("zero", "f32", "x", UB) + copy("X", G, "x", UB)),
    (EraseOverwrittenStore, "overwritten in part", X + CLEAR + f"%p = tile.region %x[0, 0] [4, 64] keep [0, 1] : {T} to "
     "memref<4x64xf32, strided<[64, 1]>, #tile.scope<shared>>\n"
     "%one_4 = arith.constant 1.0 : f32\n"
     "tile.fill %one_4 into %p : f32 into memref<4x64xf32, strided<[64, 1]>, #tile.scope<shared>>\n" + STORE),
    (MergeCopiedBuffers, "the source is read again",
     AB + copy("X", G, "a", T) + copy("a", T, "b", T) + copy("b", T, "Y", G) + copy("a", T, "X", G)),
    (MergeCopiedBuffers, "a load in a serial loop",
     AB + loop(copy("X", G, "a", T) + copy("a", T, "b", T) + copy("b", T, "Y", G))),
    (MergeCopiedBuffers, "converted", alloc(a=HALF, b=T) + copy("X", G, "a", HALF) + copy("a", HALF, "b", T)),
    (FuseStepsIntoProductStore, "used by another operation too", PRODUCT + RELU + STORE_U + STORE_U),
    (FuseStepsIntoProductStore, "the product changes before the store", PRODUCT + RELU + fill("zero", "f32", "c", P) + STORE_U),
    (FuseStepsIntoProductStore, "nothing between", PRODUCT + copy("c", P, "C", "gm<32x32xf32>")),
    (EraseDeadClear, "stored", L0C + CLEAR_C + STORE_C),
    (EraseDeadClear, "read in the next iteration", L0C + loop(GEMM + CLEAR_C)),
    (FoldClearIntoInit, "a loop that may not run",
     L0C + "%m = arith.index_cast %n : i32 to index\n" + CLEAR_C + loop(GEMM, "m")),
    (FoldClearIntoInit, "a gemm under a condition", L0C + CLEAR_C + under(GEMM)),
    (FoldClearIntoInit, "stored first", L0C + CLEAR_C + STORE_C + GEMM),
    (SplitConvertingLoad, "a serial loop", NARROW + loop(LOAD_N)),
    (SplitConvertingLoad, "no conversion", alloc(x=UB) + pipelined(copy("X", G, "x", UB))),
    (SplitConvertingLoad, "the author waits", NARROW + pipelined(LOAD_N + "hivm.hir.pipe_barrier[<PIPE_V>]\n")),
    (SplitConvertingLoad, "a buffer in L1", alloc(x="cbuf<8x64xbf16>") + pipelined(copy("X", G, "x", "cbuf<8x64xbf16>"))),
    (SplitConvertingLoad, "a tensor of the compiler", alloc(x=N, w=G) + pipelined(copy("w", G, "x", N))),
    (SplitConvertingStore, "an addition in GM", NARROW + pipelined(copy("x", N, "Y", G, 'atomic "add" '))),
    (SplitConvertingStore, "a load", NARROW + pipelined(LOAD_N)),
    (ReplaceClearByZeroProduct, "a buffer in UB", alloc(x=UB) + fill("zero", "f32", "x", UB)),
    (ExpandComposite, "an operation of HIVM", alloc(x=UB) + elementwise("exp", ["x"], [UB], "x", UB)),
    (ExpandComposite, "one instruction", alloc(x=UB, y=UB) + elementwise("axpy", ["x", "one"], [UB, "f32"], "y", UB)),
    (ExpandAbsoluteReduction, "of the elements themselves", alloc(x=UB, m="ub<8x1xf32>") + (
        f'tile.reduce "reduce_max" ins(%x : {UB}) outs(%m : ub<8x1xf32>) dims = [1]\n')),
    (ExpandTensorFill, "a buffer in UB", alloc(x=UB) + fill("zero", "f32", "x", UB)),
    (ExpandTensorCopy, "a load", alloc(x=UB) + copy("X", G, "x", UB)),
    (ExpandTensorCopy, "a store", alloc(x=UB) + copy("x", UB, "Y", G)),
    (ExpandTensorTransfer, "from UB", alloc(x=UB) + transfer("shmem_ub_put_nbi", "x", UB, "Y", G)),
    (ExpandScalarStorageFill, "a buffer in UB", alloc(x=UB) + fill("zero", "f32", "x", UB)),
    (ShiftUnsignedAsSigned, "signed elements", alloc(x=S8) + "%t = arith.trunci %n : i32 to i16\n" + elementwise(
        "bitwise_rshift", ["x", "t"], [S8, "i16"], "x", S8)),
    (ShiftUnsignedAsSigned, "no shift", alloc(x=U8) + elementwise("bitwise_and", ["x", "x"], [U8, U8], "x", U8)),
    (WidenElementwise, "a type that the operation has", alloc(x=UB) + elementwise("exp", ["x"], [UB], "x", UB)),
    (WidenElementwise, "a conversion", alloc(x="ub<8xbf16>", y="ub<8xf32>") + elementwise(
        "cast", ["x"], ["ub<8xbf16>"], "y", "ub<8xf32>")),
    (WidenRounding, "a conversion", alloc(x="ub<8xf16>", y="ub<8xf32>") + elementwise(
        "cast", ["x"], ["ub<8xf16>"], "y", "ub<8xf32>")),
    (WidenRounding, "of float32", alloc(x=UB) + elementwise("cast", ["x"], [UB], "x", UB, ' {round_mode = "floor"}')),
    (WidenReduction, "a type that the operation has", alloc(x=UB, m="ub<8x1xf32>") + (
        f'tile.reduce "reduce_sum" ins(%x : {UB}) outs(%m : ub<8x1xf32>) dims = [1]\n')),
    (MergeEqualOperations, "in two branches", "scf.if %cond {\n%a = arith.addi %i, %j : index\n"
     "%l = memref.load %X[%a, %a] : gm<8x64xf32>\n} else {\n%b = arith.addi %i, %j : index\n"
     "%m = memref.load %X[%b, %b] : gm<8x64xf32>\n}\n"),
    (MergeEqualOperations, "two reads", f"%a = memref.load %X[%i, %j] : {G}\n%b = memref.load %X[%i, %j] : {G}\n"),
    (MergeEqualOperations, "other operands", "%a = arith.addi %i, %j : index\n%b = arith.addi %j, %i : index\n"),
    (EraseLoopThatNeverRuns, "bounds with an iteration between them", loop(copy("X", G, "Y", G))),
    (EraseLoopThatNeverRuns, "an unknown bound", f"scf.for %k = %c0 to %i step %c1 {{\n{copy('X', G, 'Y', G)}}}\n"),
    (EraseUnusedOperation, "a write", f"memref.store %zero, %X[%i, %j] : {G}\n"),
    (EraseUnusedOperation, "a loop with a write", loop(copy("X", G, "Y", G))),
    (EraseUnusedOperation, "a loop that waits", "%w = scf.while (%a = %c0) : (index) -> index {\n"
     "%v = memref.load %X[%a, %a] : gm<8x64xf32>\n%go = arith.cmpf oeq, %v, %zero : f32\n"
     "scf.condition(%go) %a : index\n} do {\n^bb0(%e: index):\nscf.yield %e : index\n}\n"),
]


def applied(pattern: type[RewritePattern], module: ModuleOp) -> list[str]:
    apply_patterns(module, MADE[pattern](module), backward=pattern is EraseUnusedOperation)
    verify_module(module)
    return written(module)


@pytest.mark.parametrize(("pattern", "body", "expected"), REWRITTEN, ids=[
    f"{pattern.__name__}-{number}" for number, (pattern, _, _) in enumerate(REWRITTEN)])
def test_a_pattern_rewrites_its_form(pattern: type[RewritePattern], body: str, expected: list[str]) -> None:
    given = [line for line in written(parse(body)) if "tile.alloc" in line]
    found = applied(pattern, parse(body))
    assert [line for line in found if line not in given] == expected
    assert [line for line in given if line not in found] == REMOVED.get(pattern, [])


@pytest.mark.parametrize(("pattern", "body"), [(pattern, body) for pattern, _, body in LEFT], ids=[
    f"{pattern.__name__}-{case}" for pattern, case, _ in LEFT])
def test_a_pattern_leaves_other_forms(pattern: type[RewritePattern], body: str) -> None:
    before = written(parse(body))
    assert applied(pattern, parse(body)) == before


# --- lowering ------------------------------------------------------------------------------------------------------------

TILE, INDEX, LONG = "ub<8x64xf32>", "ub<8x64xi32>", "ub<8x128xf32>"
CALLS: dict[type[calls.LoweringPattern], tuple[str, str]] = {
    calls.LowerGather: (f'tile.call "gather" ins(%x, %t : {TILE}, {INDEX}) outs(%y : {TILE})',
                        "hivm.hir.vgather ins(%x"),
    calls.LowerTranspose: (f'tile.call "transpose" ins(%x : {TILE}) outs(%z : ub<64x8xf32>) {{permutation = array<i64: 1, 0>}}',
                           "hivm.hir.vtranspose ins(%x"),
    calls.LowerIndexedReduction: (
        f'tile.call "reduce_with_index" ins(%x : {TILE}) outs(%m, %n0 : ub<8x1xf32>, ub<8x1xi32>) '
        '{dim = 1 : i64, mode = "max_with_index_left"}', "hivm.hir.vreduce <max_with_index_left> ins(%x"),
    calls.LowerCumulativeSum: (f'tile.call "cumsum" ins(%x : {TILE}) outs(%y : {TILE}) {{dim = 0 : i64, reverse = false}}',
                               "hivm.hir.vcumsum ins(%x"),
    calls.LowerCumulativeMaximum: (f'tile.call "cummax" ins(%x : {TILE}) outs(%y : {TILE}) {{dim = 0 : i64, reverse = false}}',
                               "hivm.hir.vcummax ins(%x"),
    calls.LowerArange: (f'tile.call "arange" ins(%c0, %c4, %c1 : index, index, index) outs(%t : {INDEX})',
                        "hivm.hir.varange offset"),
    calls.LowerInterleave: (f'tile.call "interleave" ins(%x, %y : {TILE}, {TILE}) outs(%w : {LONG})',
                            "hivm.hir.vinterleave ins(%x, %y"),
    calls.LowerDeinterleave: (f'tile.call "deinterleave" ins(%w : {LONG}) outs(%x, %y : {TILE}, {TILE}) '
                              '{index_mode = "ALL_CHANNELS"}', "hivm.hir.vdeinterleave ins(%w"),
    calls.LowerConcat: (f'tile.call "concat" ins(%x, %y : {TILE}, {TILE}) outs(%w : {LONG}) {{dim = 1 : i64}}',
                        "hivm.hir.vconcat dim(1) ins(%x, %y"),
    calls.LowerPad: (f'tile.call "pad" ins(%x, %zero, %c0, %c0, %c0, %c64 : {TILE}, f32, index, index, index, index) '
                     f"outs(%w : {LONG})", "hivm.hir.vpad ins(%x"),
    calls.LowerFlip: (f'tile.call "flip" ins(%x : {TILE}) outs(%y : {TILE}) {{axis = 1 : i64}}', "hivm.hir.vflip ins(%x"),
    calls.LowerSort: (f'tile.call "vsort" ins(%x : {TILE}) outs(%y, %t : {TILE}, {INDEX}) '
                      "{axis = 1 : i64, descending = true}", "hivm.hir.vsort ins(%x"),
    calls.LowerCallByBuilder: (f'tile.call "product_of_rows" ins(%x : {TILE}) outs(%y : {TILE})', "hivm.hir.vcumprod ins(%x"),
    calls.LowerCallByEntry: (f'tile.call "mirror_rows" ins(%x : {TILE}) outs(%y : {TILE})', "hivm.hir.vmirror ins(%x"),
    calls.LowerCustomCall: ('tile.call "arith_progression" ins(%zero, %zero : f32, f32) outs(%y : ub<8x64xf32>)',
                            'hivm.hir.custom'),
    calls.LowerPrint: (f'tile.print "x = " %x : {TILE}', "hivm.hir.debug"),
    calls.LowerPrintf: ('tile.printf "%d" (%c1 : index)', "hivm.hir.custom"),
    calls.LowerDump: (f"tile.dump %x desc 3 : i64 count 4 : i64 as [4] : {TILE}", "hivm.hir.custom"),
    calls.LowerScratch: (f"tile.scratch %x : {TILE}", "hivm.hir.custom"),
    calls.LowerSignal: (f'tile.signal "shmem_signal_op" 1 : i64 (%X, %c1, %c0 : {G}, index, index)', "hivm.hir.custom"),
    calls.LowerPatchLoad: ("tile.load_patches %image to %left at (%c0, %c0) [8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1] : "
                           "cbuf<64x8xf32> to ca<64x72xf32>", 'symbol = "load_l0a_patches"'),
    calls.LowerCacheOperation: (f"hivm.hir.dcci(<single_cache_line>, <all>, %X : {G})",
                                "hivm.hir.dcci"),
}


@pytest.fixture
def plug_in_operations() -> Iterator[None]:
    """Operations of a plug-in: one that builds its HIVM op, and one whose HIVM op is generated from its entry."""
    with temporary():
        for name, facts in {
            "product_of_rows": {"hivm": "vcumprod", "build": lambda ins, outs, _: hivm.VCumprodOp(ins[0], outs[0], dims=[0])},
            "mirror_rows": {"hivm": "vmirror"},
        }.items():
            register_op(Structured, name=name, dtypes=("float32",), cost="copy", doc="An operation.", **facts)(lambda *_: None)
        yield


def kernel_with(op: str) -> ModuleOp:
    buffers = alloc(x=TILE, y=TILE, t=INDEX, w=LONG, z="ub<64x8xf32>", m="ub<8x1xf32>", n0="ub<8x1xi32>",
                    image="cbuf<64x8xf32>", left="ca<64x72xf32>")
    return parse(f"%c64 = arith.constant 64 : index\n{buffers}"
                 f"tile.launch(%c1) sub_blocks 1 : i64 {{\n^bb0(%block: index):\n{op}\n}}\n")


@pytest.mark.usefixtures("plug_in_operations")
@pytest.mark.parametrize("pattern", CALLS, ids=lambda pattern: pattern.__name__)
def test_a_lowering_pattern_lowers_its_operation(pattern: type[calls.LoweringPattern], monkeypatch: pytest.MonkeyPatch) -> None:
    """The operation is lowered by this pattern alone: without the others the result is the same, without it there is none."""
    body, expected = CALLS[pattern]
    kind = next(kind for kind, patterns in calls.PATTERNS.items() if pattern in patterns)

    def lowered() -> str:
        module = kernel_with(body)
        AssignCores().apply(make_context(), module)
        LowerToHivm().apply(make_context(), module)
        return print_module(module)

    whole = lowered()
    assert expected in whole
    monkeypatch.setitem(calls.PATTERNS, kind, (pattern,))
    assert lowered() == whole
    monkeypatch.setitem(calls.PATTERNS, kind, tuple(each for each in CALLS if each is not pattern))
    with pytest.raises(TileError, match="T290"):
        lowered()


@pytest.mark.usefixtures("plug_in_operations")
@pytest.mark.parametrize("pattern", CALLS, ids=lambda pattern: pattern.__name__)
def test_a_lowering_pattern_leaves_other_operations(pattern: type[calls.LoweringPattern]) -> None:
    for other, (body, _) in CALLS.items():
        op = next(op for op in kernel_with(body).walk() if type(op) in calls.PATTERNS)
        rewriter = PatternRewriter(op)
        if other is not pattern:
            pattern(None).match_and_rewrite(op, rewriter)  # type: ignore[arg-type]  # what does not match asks for nothing
            assert not rewriter.has_done_action


def test_every_structured_operation_has_a_lowering_pattern() -> None:
    mnemonics = {entry.hivm for entry in operations().values() if isinstance(entry, Structured)}
    assert mnemonics == {"custom", *(pattern.mnemonic for pattern in CALLS if issubclass(pattern, calls.CallPattern))}


# --- all patterns --------------------------------------------------------------------------------------------------------

BASES = {calls.LoweringPattern, calls.CallPattern, calls.LowerCumulative}


def patterns_of_the_package() -> set[type[RewritePattern]]:
    modules = [import_module(found.name) for found in pkgutil.walk_packages(
        tilelang_npu.transforms.__path__, "tilelang_npu.transforms.")]
    return {each for module in modules for each in vars(module).values()
            if inspect.isclass(each) and issubclass(each, RewritePattern) and each.__module__ == module.__name__
            and not each.__name__.startswith("_")} - BASES


def test_every_pattern_has_cases_and_shows_its_form() -> None:
    patterns = patterns_of_the_package()
    assert patterns == {pattern for pattern, _, _ in REWRITTEN} | CALLS.keys()
    assert patterns == {pattern for pattern, _, _ in LEFT} | CALLS.keys()
    assert {pattern.__name__ for pattern in patterns
            if not re.search(r"::\n\n( +).*\S\n\1-> \S", pattern.__doc__ or "")} == set()


# --- the driver ----------------------------------------------------------------------------------------------------------


class _Note(RewritePattern):
    """Notes the operations that it visits; replaces an addition by two, and refuses a multiplication."""

    def __init__(self) -> None:
        self.visited: list[str] = []

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        name = op.results[0].name_hint if op.results else None
        if name in ("a", "b", "c", "d"):
            self.visited.append(name)
        if op.name == "arith.addi":
            made = op.clone()
            made.results[0].name_hint = "d"
            rewriter.insert(made)
        if op.name == "arith.muli":
            raise TileError("no", code="T000")


ADDITIONS = "%a = arith.addi %i, %j : index\n" + under("%b = arith.addi %i, %j : index\n") + "%c = arith.subi %a, %j : index\n"


@pytest.mark.parametrize("backward", [False, True])
def test_each_operation_is_visited_once_in_order(backward: bool) -> None:
    note = _Note()
    module = parse(ADDITIONS)
    apply_patterns(module, note, backward=backward)
    assert note.visited == (["c", "b", "a"] if backward else ["a", "b", "c"])  # and none of those that it inserts
    assert len([op for op in module.walk() if op.name == "arith.addi"]) == 4


def test_operations_of_other_classes_and_of_erased_loops_are_not_visited() -> None:
    note = _Note()
    module = parse(ADDITIONS + loop("%d = arith.subi %i, %j : index\n", "c0"))
    apply_patterns(module, EraseLoopThatNeverRuns(), note, classes=(scf.ForOp, arith.SubiOp))
    assert note.visited == ["c"]


def test_the_first_pattern_that_matches_is_applied() -> None:
    first, second = _Note(), _Note()
    apply_patterns(parse(ADDITIONS), first, second)
    assert (first.visited, second.visited) == (["a", "b", "c"], ["c"])


def test_a_refusal_ends_the_visit_and_does_not_carry_the_module() -> None:
    note = _Note()
    module = parse("%a = arith.addi %i, %j : index\n%b = arith.muli %i, %j : index\n%c = arith.subi %a, %j : index\n")
    with pytest.raises(TileError, match="T000") as caught:
        apply_patterns(module, note)
    assert note.visited == ["a", "b"]
    assert not hasattr(caught.value, "__notes__")


def test_an_accumulator_is_cleared_to_zero_only() -> None:
    module = parse(L0C + fill("one", "f32", "c", ACC) + STORE_C)
    with pytest.raises(TileError, match="c is in L0C, which can only be cleared to zero"):
        applied(ReplaceClearByZeroProduct, module)
