"""The estimate of how many iterations of a loop should be in flight."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.builtin import MemRefType, f32

from tilelang_npu.dialects import tile
from tilelang_npu.transforms.tile.overlap_iterations.l2_capacity import L2Capacity

SLOT = 64 * 64 * 4
"""The bytes of a slot of the workspace."""


def slots(count: int) -> Any:
    return {tile.AllocOp("w", MemRefType(f32, (64, 64))): count}


@pytest.mark.parametrize(("spare", "slower"), [(1, False), (0, False), (-1, True)])
def test_workspaces_that_fill_l2_exactly_fit(spare: int, slower: bool) -> None:
    workspaces = slots(4)
    needed = 1000 + 3 * (500 + 4 * SLOT)
    capacity = L2Capacity(capacity=needed + spare, blocks=3, tensors=1000, others=500, trips=10)
    assert capacity.bytes_needed(workspaces) == needed
    enough = L2Capacity(capacity=1 << 40, blocks=3, tensors=1000, others=500, trips=10)
    assert (capacity.relative_time(4, workspaces) > enough.relative_time(4, workspaces)) == slower
