"""Integers with one value for each block of a batch."""

from __future__ import annotations

import numpy as np
import pytest

from tilelang_npu.simulator.machine.batched_integers import LARGEST, BatchedInt, BlockBatch, NotBatchableError


def test_products_of_batched_integers() -> None:
    batch = BlockBatch(np.arange(5))
    number = batch.number
    assert isinstance(number, BatchedInt)
    squared = number * (number + 3)
    assert isinstance(squared, BatchedInt)
    np.testing.assert_array_equal(squared.values(), np.arange(5) * (np.arange(5) + 3))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_product_that_may_exceed_64_bits_is_refused(sign: int) -> None:
    """The largest magnitudes count, also of negative values; a smaller product is computed."""
    batch = BlockBatch(np.arange(3))
    large, small = batch.of(np.array([1, 2, sign << 31])), batch.of(np.array([0, 1, 1 << 31]))
    assert isinstance(large, BatchedInt)
    with pytest.raises(NotBatchableError):
        _ = large * small
    half = batch.of(np.array([0, 1, (1 << 31) - 1]))
    product = large * half
    assert isinstance(product, BatchedInt)
    assert product.values().tolist() == [0, 2, (sign << 31) * ((1 << 31) - 1)]
    assert abs(product.values()).max() < LARGEST
