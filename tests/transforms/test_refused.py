"""Refused optimisations: ``explain()`` names the line, the reason with sizes, and an edit that allows the optimisation."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.dialects.ir.remarks import DONE, Remark
from tilelang_npu.transforms.infra.optimisations import OPTIMISATIONS

# Each makes a kernel as it was first written, and as the edit makes it.


def shifted(edited: bool) -> Any:
    @T.prim_func
    def main(X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 64), "float32")
            old = T.alloc_shared((8, 64), "float32")
            T.copy(X, x)
            T.copy(X, old)
            for i, j in T.Parallel(8, 56):
                x[i, j + 8] = (old if edited else x)[i, j] + 1.0
            T.copy(x, Y)

    return main


def converted(edited: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16" if edited else "float32"), B: T.Tensor((32, 32), "float16"),
             C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 32), "float16")
            own = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.copy(a, own)
            T.copy(B, b)
            T.gemm(own, b, c, initC=True)
            T.copy(c, C)

    return main


def read_twice(edited: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float16"), D: T.Tensor((32, 32), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            out = T.alloc_shared((32, 32), "float16")
            more = T.alloc_shared((32, 32), "float16")
            T.copy(A, a)
            T.gemm(a, a, c, initC=True)
            T.copy(c, out)
            if edited:
                T.copy(c, more)
                T.copy(more, C)
            else:
                T.copy(out, C)
            T.vexp(out, out)
            T.copy(out, D)

    return main


def halves(edited: bool) -> Any:
    rows = 32 if edited else 31

    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            v = T.alloc_shared((rows, 32), "float32")
            T.copy(A, a)
            T.gemm(a, a, c, initC=True)
            T.copy(c[0:rows, 0:32], v)
            T.vexp(v, v)
            T.copy(v, C[0:rows, 0:32])

    return main


def weights(edited: bool) -> Any:
    @T.prim_func
    def main(X: T.Tensor((4, 8, 64), "float32"), W: T.Tensor((8, 64), "float32"), Y: T.Tensor((4, 8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 64), "float32")
            w = T.alloc_shared((8, 64), "float32")
            for i in T.serial(4):
                T.copy(X[i, 0, 0], x)
                T.copy(W, w)
                T.vmul(w, x, x if edited else w)
                T.copy(x if edited else w, Y[i, 0, 0])

    return main


def cleared(edited: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.clear(c)
            for _ in T.serial(3 if edited else n):
                T.gemm(a, a, c)
            T.copy(c, C)

    return main


def partly_written(edited: bool) -> Any:
    @T.prim_func
    def main(X: T.Tensor((4, 8, 64), "float32"), Y: T.Tensor((4, 8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 64), "float32")
            for i in T.Pipelined(4, num_stages=1):  # with slots, multi-buffer has a remark on x
                if edited:
                    T.copy(X[i, 0, 0], x)
                else:
                    T.copy(X[i, 0, 0], x[0:4, 0:64])
                T.vexp(x, x)
                T.copy(x, Y[i, 0, 0])

    return main


def larger_than_half(edited: bool) -> Any:
    columns = 512 if edited else 1150

    @T.prim_func
    def main(X: T.Tensor((64, columns), "float32"), Y: T.Tensor((64, columns), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((16, columns), "float32")
            y = T.alloc_shared((16, columns), "float32")
            for i in T.serial(4):
                T.copy(X[i * 16, 0], x)
                T.vexp(x, y)
                T.vmul(x, y, y)
                T.copy(y, Y[i * 16, 0])

    return main


def converted_before_and_after(edited: bool) -> Any:
    """The loop between needs the bytes that the first conversion would keep."""
    columns = 64 if edited else 160

    @T.prim_func
    def main(X: T.Tensor((63, columns), "float16"), Y: T.Tensor((63, columns), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((63, columns), "float16")
            y = T.alloc_shared((63, columns), "float32")
            row = T.alloc_shared((1, columns), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(63, columns):
                y[i, j] = T.cast(x[i, j], "float32") * 2.0
            T.reduce_max(y, row, dim=0)
            for i, j in T.Parallel(63, columns):
                y[i, j] = (y[i, j] + row[0, j]) * (y[i, j] - 2.0) + (y[i, j] - 1.0) * (y[i, j] + 1.0)
            for i, j in T.Parallel(63, columns):
                y[i, j] = y[i, j] + T.cast(x[i, j], "float32")
            T.copy(y, Y)

    return main


def loaded_in_turn(edited: bool) -> Any:
    @T.prim_func
    def main(X: T.Tensor((4, 8, 64), "float32"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 64), "float32")
            other = T.alloc_shared((8, 64), "float32")
            total = T.alloc_shared((8, 64), "float32")
            T.clear(total)
            for i in T.Pipelined(4, num_stages=2):
                T.copy(X[i, 0, 0], x)
                T.vadd(total, x, total)
                if edited:
                    T.copy(x, other)
            T.vadd(total, other if edited else x, total)
            T.copy(total, Y)

    return main


def attention(edited: bool) -> Any:
    @T.prim_func
    def main(Q: T.Tensor((64, 64), "float16"), K: T.Tensor((256, 64), "float16"), O: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            q = T.alloc_shared((64, 64), "float16")
            k = T.alloc_shared((64, 64), "float16")
            p = T.alloc_shared((64, 64), "float16")
            s = T.alloc_fragment((64, 64), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            total = T.alloc_shared((64, 64), "float32")
            T.copy(Q, q)
            T.clear(total)
            for i in T.Pipelined(4, num_stages=2):
                T.copy(K[i * 64, 0], k)
                T.gemm(q, k, s, initC=True, b_transpose=True)
                T.vexp(s, s)
                T.copy(s, p)
                T.gemm(p, k, c, initC=True)
                T.vadd(total, c, total)
                if not edited:
                    T.dump_tensor(total, 1, 16)
            T.copy(total, O)

    return main


def crowded(edited: bool) -> Any:
    rows = 48 if edited else 56

    @T.prim_func
    def main(A: T.Tensor((5, rows, 256), "float32"), C: T.Tensor((5, rows, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            for turn in T.serial(5):
                a = T.alloc_shared((rows, 256), "float32")
                b = T.alloc_shared((rows, 256), "float32")
                c = T.alloc_shared((rows, 256), "float32")
                d = T.alloc_shared((rows, 256), "float32")
                e = T.alloc_shared((rows, 256), "float32")
                T.copy(A[turn, 0, 0], a)
                T.vexp(a, b)
                T.vadd(a, b, c)
                T.vmul(c, b, d)
                T.vadd(d, c, e)
                T.copy(e, C[turn, 0, 0])

    return main


def side_by_side(edited: bool) -> Any:
    rows = 64 if edited else 96

    @T.prim_func
    def main(A: T.Tensor((rows, 256), "float32"), B: T.Tensor((rows, 256), "float32"), C: T.Tensor((rows, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((rows, 256), "float32")
            b = T.alloc_shared((rows, 256), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.vadd(a, b, a)
            T.copy(a, C)

    return main


def row_by_row(edited: bool) -> Any:
    columns = 24 if edited else 25

    @T.prim_func
    def main(X: T.Tensor((8, columns), "float32"), S: T.Tensor((8,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, columns), "float32")
            s = T.alloc_shared((8,), "float32")
            T.copy(X, x)
            T.copy(S, s)
            for r in T.serial(8):
                T.vmul(x[r, 0:columns], s[r], x[r, 0:columns])
            T.copy(x, X)

    return main


REFUSED = {
    "banks": (
        side_by_side,
        r"an instruction reads b and its other operand from the same banks: 196 608 of the 196 608 bytes of UB are taken",
        "shrink the tiles"),
    "vectorise-parallel": (shifted, r"a point reads an element that another point writes", "T.copy the buffer to a second one"),
    "collapse-copies": (
        converted, r"a \(2 048 bytes\) is copied to own: a is loaded from f32 as f16", "the element type of the tensor"),
    "fuse-fixpipe": (
        read_twice, r"through UB: out \(2 048 bytes\) is used at line \d+, line \d+ too", "copy the product to the tensor"),
    "bind-sub-blocks": (
        halves, r"v \(3 968 bytes of UB\) is not divided between the Vector cores: the buffer's first axis has 31 rows",
        "an even number of rows"),
    "collapse-rows": (
        row_by_row, r"rows of x are processed one by one: rows of x begin 100 bytes apart", "rows of a multiple of 8 elements"),
    "reuse-results": (
        converted_before_and_after, r"a tile is computed again that line \d+ has computed: memory planning finds no room",
        "shrink the tiles"),
    "pipeline-loops": (larger_than_half, "do not overlap: UB has too little room for the slots of all buffers",
                       "shrink the tiles"),
    "hoist-loads": (
        weights, r"w \(2 048 bytes of UB\) is loaded unchanged in each iteration of the loop at line \d+: line \d+ writes w",
        "write to another buffer in place of w"),
    "fold-accumulator-clear": (
        cleared,
        r"the Vector core adds products to c \(4 096 bytes\) in UB, because .* the loop .* possibly has no iteration",
        "give the loop constant bounds"),
    "sink-buffers": (
        partly_written, r"x \(2 048 bytes of UB\) is live in all iterations of the loop at line \d+", "write all of x"),
    "multi-buffer": (
        loaded_in_turn,
        r"x \(2 048 bytes of UB\) has one slot for the 2 stages.*: line \d+ possibly reads the value that the loop left in x",
        "let the last iteration copy the value to another buffer, and read that buffer in place of x"),
    "overlap-iterations": (attention, r"iterations do not overlap: line \d+ prints", "print outside of the loop"),
    "keep-apart": (
        crowded, r"share bytes, so that operations wait for each other: .* take 229 376 bytes, and 196 608 are available",
        "to 85 % or less"),
}


def about(func: Any, name: str) -> tuple[Any, list[Remark]]:
    kernel = tilelang.compile(func, target="npuir")
    return kernel, [one for one in kernel.explain().remarks if one.about == name]


def test_what_has_no_case_has_no_candidates_that_an_author_could_help() -> None:
    """A store is dead or it is not; a schedule by hand is followed, or is an error; a copy that pads or adds stays one copy; a
    tile that cannot be divided is an error (T104), or its loop is a warning (T192); that blocks print, or load what others
    store, is what the kernel is for.
    """
    assert OPTIMISATIONS.keys() - REFUSED.keys() == {"drop-dead-stores", "make-persistent", "schedule-statements",
                                                     "split-conversions", "split-tiles"}


@pytest.mark.parametrize("name", REFUSED)
def test_explain_says_refused_where_it_was_refused_and_with_the_edit_it_is_done(name: str) -> None:
    made, why, edit = REFUSED[name]
    with pytest.warns(tilelang.TileWarning, match="T149") if made is shifted else nullcontext():  # of its order, too
        kernel, before = about(made(edited=False), name)
    refused = [one for one in kernel.explain().refused if one.about == name and re.search(why, one.text)]
    assert len(refused) == 1, before
    (one,) = refused
    assert one.place is not None and one.place.file == __file__ and edit in one.edit
    shown = kernel.explain().sections["refused"]
    (row,) = (row for row, line in enumerate(shown) if line.startswith(f"{name}  line {one.place.line}: ") and one.text in line)
    assert shown[row + 1] == f"  to have it: {one.edit}"
    assert f"{name:<{max(map(len, OPTIMISATIONS))}}  no occasion" not in kernel.explain().sections["optimisations"]
    _, after = about(made(edited=True), name)
    assert not any(re.search(why, each.text) for each in after)
    assert name == "keep-apart" or len([each for each in after if each.kind == DONE]) > len(
        [each for each in before if each.kind == DONE])


@pytest.mark.parametrize("rows", [64, 112])
def test_slots_that_do_not_fit_are_not_reported_as_granted(rows: int) -> None:
    @T.prim_func
    def main(X: T.Tensor((4, rows, 256), "float32"), Y: T.Tensor((4, rows, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((rows, 256), "float32")
            for i in T.Pipelined(4, num_stages=2):
                T.copy(X[i, 0, 0], x)
                T.vexp(x, x)
                T.copy(x, Y[i, 0, 0])

    kernel, remarks = about(main, "multi-buffer")
    (x,) = kernel.memory_report().memories[0].buffers
    assert len(x.addresses) == (2 if rows == 64 else 1)
    (one,) = remarks
    (pipeline,) = kernel.explain().sections["pipelines"]
    if rows == 64:
        assert one.kind == DONE and one.text.startswith("x has 2 slots in the loop at line")
        assert pipeline.endswith("multi-buffered: x (UB)")
    else:
        assert one.text == ("x has one slot instead of 2: a slot takes 114 688 bytes, and too few of the 196 608 bytes of UB"
                            " are free")
        assert pipeline.endswith("multi-buffered: nothing")


@pytest.mark.parametrize(("count", "report"), [
    (0, "the loop has no iteration, and is removed"), (1, "the loop has one iteration, so no iterations can overlap"),
    (2, "multi-buffered: x (UB)")])
def test_a_pipelined_loop_of_too_few_iterations_says_so(count: int, report: str) -> None:
    @T.prim_func
    def main(X: T.Tensor((4, 16, 256), "float32"), Y: T.Tensor((4, 16, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((16, 256), "float32")
            for i in T.Pipelined(count, num_stages=2):
                T.copy(X[i, 0, 0], x)
                T.vexp(x, x)
                T.copy(x, Y[i, 0, 0])

    kernel, _ = about(main, "multi-buffer")
    (pipeline,) = kernel.explain().sections["pipelines"]
    assert pipeline.endswith(f"num_stages=2  {report}")
    x, y = np.random.default_rng(0).standard_normal((4, 16, 256)).astype(np.float32), np.zeros((4, 16, 256), np.float32)
    kernel(x, y)
    np.testing.assert_allclose(y[:count], np.exp(x[:count]), rtol=1e-6)
    assert not y[count:].any()


def test_there_is_no_section_where_nothing_was_refused() -> None:
    kernel = tilelang.compile(shifted(edited=True), target="npuir")
    assert "refused" not in kernel.explain().sections and not kernel.explain().refused


@pytest.mark.parametrize("columns", [128, 64])
def test_an_accumulator_that_L0C_has_room_for_once_says_so(columns: int) -> None:
    """Two of 96 KB do not fit 128 KB; with the edit, smaller tiles, two of 48 KB do."""

    @T.prim_func
    def main(A: T.Tensor((768, 64), "float16"), B: T.Tensor((64, columns), "float16"), C: T.Tensor((768, columns), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            b = T.alloc_shared((64, columns), "float16")
            T.copy(B, b)
            for i in T.Pipelined(4, num_stages=2):
                a = T.alloc_shared((192, 64), "float16")
                c = T.alloc_fragment((192, columns), "float32")
                T.copy(A[i * 192, 0], a)
                T.gemm(a, b, c, initC=True)
                T.copy(c, C[i * 192, 0])

    kernel, remarks = about(main, "multi-buffer")
    reported = [one.text for one in remarks if one.text.startswith("c")]
    if columns == 128:
        assert len(reported) == 1 and "98 304 bytes of L0C) has one slot for the 2 stages" in reported[0]
        assert "L0C, which has 131 072 bytes, too few for a second slot" in reported[0]
    else:
        assert len(reported) == 1 and "c has 2 slots" in reported[0]
    a, b = (np.random.default_rng(7).standard_normal(shape).astype(np.float16) for shape in ((768, 64), (64, columns)))
    c = np.zeros((768, columns), np.float16)
    kernel(a, b, c)
    np.testing.assert_allclose(c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32), rtol=2e-3, atol=2e-2)
