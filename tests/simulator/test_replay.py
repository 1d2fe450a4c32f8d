"""Re-execution of blocks on test values, which can be trip counts that the launch never has."""

from __future__ import annotations

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_a_trip_count_among_the_test_values_ends_the_block_early() -> None:
    """Bits of a float that is drawn at random are a trip count of 10^9: the block is then run on the values of the launch."""
    @T.prim_func
    def main(C: T.Tensor((8,), "float32"), Y: T.Tensor((8,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            bits = T.alloc_ub((8,), "float32")
            count = T.alloc_ub((8,), "int32")
            y = T.alloc_ub((8,), "float32")
            T.copy(C, bits)
            T.reinterpretcast(count, bits, "int32")
            T.vbrc(0.0, y)
            for _i in T.serial(count[0]):
                T.vadd(y, 1.0, y)
            T.copy(y, Y)
            T.copy(bits, C)

    kernel = tilelang.compile(main, target="npuir")
    c, y = np.full(8, 5, np.int32).view(np.float32), np.zeros(8, np.float32)
    kernel(c, y)
    np.testing.assert_array_equal(y, 5)
    recorded = kernel.last_launch.recorded
    (block,) = recorded.blocks
    issued = 0

    class Counting:
        def before(self, *_: object) -> None:
            nonlocal issued
            issued += 1

        def after(self, *_: object) -> None:
            pass

    again = recorded.replay.after(block, observer=Counting())
    assert again is not None
    ((events, _),) = again.recorded
    assert list(events) == list(block.streams[0])
    assert len(block.streams[0]) < issued < 100_000
