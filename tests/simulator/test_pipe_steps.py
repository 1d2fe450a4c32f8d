"""The steps of the matmul macro: the wait for each operand is before its first load, the set after its last."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator.machine.op_records import Mmad, number_of
from tilelang_npu.simulator.time.pipe_steps import PIPE, RUN, SET, WAIT, PipeStep


@tilelang.jit(out_idx=[-1], target="npuir")
def product(K: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((32, K), "float16"), B: T.Tensor((K, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _vid):
            a = T.alloc_shared((32, 1024), "float16")
            b = T.alloc_shared((1024, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            for k in T.Pipelined(K // 1024, num_stages=2):
                T.copy(A[0, k * 1024], a)
                T.copy(B[k * 1024, 0], b)
                T.gemm(a, b, c, initC=(k == 0))
            T.copy(c, C)

    return main


def test_waits_and_sets_of_a_product_stand_at_its_own_loads() -> None:
    launch = product(4096).trace()
    (run,) = launch.recorded.blocks
    seen = 0
    for expansion, stream in zip(launch.expansions, run.streams, strict=True):
        for event in stream:
            if isinstance(expansion.records[number_of(event)].work, Mmad):
                seen += 1
                _check(expansion.of(event))
    assert seen == 4


def _check(steps: tuple[PipeStep, ...]) -> None:
    places = {step.place: number for number, step in enumerate(steps) if step.place >= 0}
    loads = {operand: [number for number, step in enumerate(steps) if step.kind == RUN and step.accesses == (operand,)]
             for operand in (0, 1)}
    assert len(loads[0]) == len(loads[1]) > 1  # several parts of K
    for operand, (wait, free) in enumerate(((0, 2), (1, 3))):
        assert places[wait] == loads[operand][0] - 1 and steps[places[wait]].kind == WAIT
        assert places[free] == loads[operand][-1] + 1 and steps[places[free]].kind == SET
        assert {steps[places[wait]].pipe, steps[places[free]].pipe} == {PIPE["MTE1"]}
    products = [number for number, step in enumerate(steps) if step.kind == RUN and step.pipe == PIPE["M"]]
    assert len(products) == len(loads[0])
    assert all(load < made for load, made in zip(loads[1], products, strict=True))
