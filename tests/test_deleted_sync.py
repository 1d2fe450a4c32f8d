"""No inserted wait is redundant: if any set or wait of a dump is removed, the machine's findings change.

The sets and waits inside of mmadL1 are removed one by one as well.

The static check has the same findings for each.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
from tilelang_npu import TileError, simulator
from tilelang_npu import language as T
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator.result.static_check import check

PASSED = re.compile(r"(?<=sync_related_args\()(%\w+), (%\w+), (%\w+), (%\w+)")
"""The events with MTE2 that mmadL1 waits for and sets; the other arguments are for its two halves."""
SYNC = re.compile(r"hivm\.hir\.(set_flag|wait_flag|sync_block_set|sync_block_wait|pipe_barrier)\b")


def gemm(M: int, N: int, K: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(M // 32 * (N // 32), is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 16), "float16")
            b = T.alloc_shared((16, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            for k in T.Pipelined(K // 16, num_stages=2):
                T.copy(A[cid // (N // 32) * 32, k * 16], a)
                T.copy(B[k * 16, cid % (N // 32) * 32], b)
                T.gemm(a, b, c, initC=(k == 0))
            T.copy(c, C[cid // (N // 32) * 32, cid % (N // 32) * 32])

    return main


def row_sums(M: int, N: int) -> Any:
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            x = T.alloc_shared((4, N), "float32")
            s = T.alloc_shared((4, 1), "float32")
            for i in T.Pipelined(M // 8, num_stages=2):
                T.copy(X[cid * (M // 2) + i * 4, 0], x)
                T.reduce_sum(x, s, dim=-1)
                T.vdiv(x, s, x)
                T.copy(x, Y[cid * (M // 2) + i * 4, 0])

    return main


def both_cores(M: int, N: int, K: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((16, K), "float16")
            b = T.alloc_shared((K, N), "float16")
            c = T.alloc_fragment((16, N), "float32")
            T.copy(B[0, 0], b)
            for i in T.serial(M // 16):
                T.copy(A[i * 16, 0], a)
                T.gemm(a, b, c, initC=True)
                T.vexp(c, c)
                T.copy(c, C[i * 16, 0])

    return main


def to_and_fro(M: int, N: int, K: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, K), "float16")
            b = T.alloc_shared((K, N), "float16")
            p = T.alloc_shared((32, K), "float16")
            s = T.alloc_fragment((32, K), "float32")
            c = T.alloc_fragment((32, N), "float32")
            T.copy(B[0, 0], b)
            for i in T.Pipelined(M // 32, num_stages=2):
                T.copy(A[i * 32, 0], a)
                T.gemm(a, a, s, initC=True, b_transpose=True)
                T.vexp(s, s)
                T.copy(s, p)
                T.gemm(p, b, c, initC=True)
                T.vexp(c, c)
                T.copy(c, C[i * 32, 0])

    return main


CASES = {
    "gemm": (gemm, (64, 64, 80), [(64, 80), (80, 64)], np.float16),
    "row_sums": (row_sums, (48, 96), [(48, 96)], np.float32),
    "both_cores": (both_cores, (64, 32, 48), [(64, 48), (48, 32)], np.float32),
    "both_cores on A5": (both_cores, (64, 32, 48), [(64, 48), (48, 32)], np.float32),
    "to_and_fro on A5": (to_and_fro, (96, 32, 32), [(96, 32), (32, 32)], np.float32),
}
"""On A5 the cores hand over on chip: the same flags, around the memories of the other core."""


def _with_one_less(line: str) -> list[str]:
    """A line without one of the events that it passes to mmadL1, for each that it passes."""
    found = PASSED.search(line)
    none = "%no_event = arith.constant -1 : i64\n"
    return [none + line[:found.start(each)] + "%no_event" + line[found.end(each):]
            for each in range(1, 5) if found[each] != "%cm1_i64"] if found else []


def _report(text: str, inputs: list[Any], out: Any, blocks: int) -> tuple[object, ...]:
    program = simulator.Program(parse_module(text))
    static = check(program, [*map(np.zeros_like, inputs), np.zeros_like(out)], blocks)
    hang: TileError | None = None
    try:
        launch = simulator.simulate(program, [*inputs, out], blocks=blocks, hazards=True)
    except TileError as error:
        hang = error
    if hang is not None:
        assert [one.code for one in static.errors] == [hang.code]
        return (hang.code, str(hang))
    hazards = tuple(map(str, launch.hazards))
    assert (tuple(map(str, static.hazards)), static.errors, static.notes) == (hazards, [], [])
    assert static.launch is not None and static.launch.cycles == launch.cycles
    return (launch.cycles, hazards)


@pytest.mark.parametrize("name", CASES)
def test_every_one_is_missed(name: str, rng: np.random.Generator) -> None:
    make, sizes, shapes, kind = CASES[name]
    kernel = tilelang.compile(make(*sizes), out_idx=[-1], target="npuir", platform="A5" if name.endswith("A5") else "A2")
    inputs = [rng.uniform(0.1, 1, shape).astype(np.float32 if kind == np.float32 and len(shapes) == 1 else np.float16)
              for shape in shapes]
    out = np.array(kernel(*inputs))
    blocks = kernel.last_launch.blocks
    text = kernel.mlir()
    assert ("dual_dst_mode" in text) == name.endswith("A5")
    whole = _report(text, inputs, out, blocks)
    assert whole[1] == (), "the kernel itself has no hazard"
    lines = text.split("\n")
    changed = [(line, "\n".join(lines[:index] + lines[index + 1:])) for index, line in enumerate(lines) if SYNC.search(line)]
    passed = [(line, "\n".join([*lines[:index], less, *lines[index + 1:]])) for index, line in enumerate(lines)
              for less in _with_one_less(line)]
    assert len(changed) >= 8 and (name == "row_sums") == (not passed)
    idle = [line.strip() for line, without in [*changed, *passed]
            if _report(without, inputs, np.zeros_like(out), blocks) == whole]
    # the barrier at the end of a kernel waits for nothing that its end would not wait for
    assert [line for line in idle if "PIPE_ALL" not in line] == []
