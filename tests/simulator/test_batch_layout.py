"""Row-major matrices in place of fractals: the same elements in another order, or without a copy."""

from __future__ import annotations

from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator.machine import cube_products
from tilelang_npu.simulator.machine.batch_layout import ArrayPlace, Panels, in_rows, panels_of
from tilelang_npu.simulator.machine.datapath import widen
from tilelang_npu.simulator.run import batched_execution

PANELS = Panels(64, 4, 6 * 32, 32)
"""Four panels of six rows of 32 bytes, from byte 64 on."""


def _bytes_of(place: ArrayPlace) -> np.ndarray[Any, Any]:
    return np.array([place.offset + byte + sum(index * stride for index, stride in zip(at, place.strides, strict=True))
                     for at in product(*(range(int(size)) for size in place.sizes)) for byte in range(place.element)])


def _moved(byte: int) -> int:
    panel, rest = divmod(byte - 64, 6 * 32)
    row, inside = divmod(rest, 32)
    return 64 + row * 4 * 32 + panel * 32 + inside


@pytest.mark.parametrize("place", [
    (64, (4, 6, 16), (192, 32, 2), 2), (64, (4, 6), (192, 32), 32), (64, (4, 2, 3, 16), (192, 96, 32, 2), 2),
    (64 + 192 + 32 + 4, (2, 3, 4), (384, 64, 8), 4), (64 + 5 * 32, (), (), 2), (64, (1, 6), (9 * 192, 32), 4)])
def test_every_element_is_where_the_rows_have_it(place: tuple[Any, ...]) -> None:
    found = ArrayPlace(*place).in_rows(PANELS)
    assert found is not None
    np.testing.assert_array_equal(_bytes_of(found), [_moved(int(byte)) for byte in _bytes_of(ArrayPlace(*place))])


@pytest.mark.parametrize("place", [
    (32, (4,), (192,), 2), (64, (5, 6), (192, 32), 32), (64, (7,), (32,), 32), (64, (24,), (32,), 32), (64, (17,), (2,), 2),
    (64, (2,), (48,), 2), (64, (2,), (200,), 2), (64 + 16, (1,), (32,), 32), (64, (inf,), (32,), 2), (128, (2,), (-32,), 2),
    (64, (2, 96), (384, 2), 2)])
def test_what_goes_from_row_to_row_or_panel_to_panel_otherwise_keeps_the_fractals(place: tuple[Any, ...]) -> None:
    assert ArrayPlace(*place).in_rows(PANELS) is None
    assert in_rows([PANELS], [ArrayPlace(64, (4, 6), (192, 32), 32), ArrayPlace(*place)]) is None


def test_matrices_of_two_shapes_keep_their_fractals() -> None:
    whole = ArrayPlace(64, (4, 6, 16), (192, 32, 2), 2)
    assert panels_of(whole, 64, 64 + 4 * 192) == PANELS
    assert in_rows([PANELS, PANELS], [whole]) == [whole.in_rows(PANELS)]
    for other in (None, Panels(64, 2, 12 * 32, 32)):
        assert in_rows([PANELS, other], [whole]) is None
    assert in_rows([PANELS], [whole, None]) is None


@pytest.mark.parametrize(("rows", "depth", "columns", "turned"), [(32, 48, 64, False), (17, 33, 40, True), (1, 64, 48, True)])
def test_products_on_whole_rows_are_those_on_fractals(rows: int, depth: int, columns: int, turned: bool,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit, for every tile of a launch that runs as one."""
    monkeypatch.setattr(batched_execution, "LEAST_BLOCKS", 2)
    monkeypatch.setattr(batched_execution, "LEAST_BYTES", 0)
    monkeypatch.setattr(batched_execution, "AT_ONCE", 0)
    ways: list[bool] = []
    made = cube_products._Accumulator.__init__

    def noted(self: Any, *given: Any, by_rows: bool, **more: Any) -> None:
        ways.append(by_rows)
        made(self, *given, by_rows=by_rows, **more)

    monkeypatch.setattr(cube_products._Accumulator, "__init__", noted)

    @T.prim_func
    def main(A: T.Tensor((4 * rows, 2 * depth), "float16"),
             B: T.Tensor((columns, 2 * depth) if turned else (2 * depth, columns), "float16"),
             C: T.Tensor((4 * rows, columns), "float32")):
        with T.Kernel(4, is_npu=True) as (block, _):
            a = T.alloc_shared((rows, depth), "float16")
            b = T.alloc_shared((columns, depth) if turned else (depth, columns), "float16")
            c = T.alloc_fragment((rows, columns), "float32")
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[block * rows, k * depth], a)
                if turned:
                    T.copy(B[0, k * depth], b)
                else:
                    T.copy(B[k * depth, 0], b)
                T.gemm(a, b, c, initC=(k == 0), b_transpose=turned)
            T.copy(c, C[block * rows, 0])

    rng = np.random.default_rng(0)
    a = rng.standard_normal((4 * rows, 2 * depth)).astype(np.float16)
    b = rng.standard_normal((columns, 2 * depth) if turned else (2 * depth, columns)).astype(np.float16)
    together, alone = np.zeros((4 * rows, columns), np.float32), np.zeros((4 * rows, columns), np.float32)
    program = tilelang.compile(main, target="npuir").program
    program.run([a, b, together], blocks=4)
    assert ways and all(ways)
    ways.clear()
    program.run([a, b, alone], blocks=4, order=range(4))
    assert ways and not any(ways)
    assert together.tobytes() == alone.tobytes()


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("finite", [False, True])
def test_every_half_precision_number_is_itself_in_f32(kind: str, finite: bool) -> None:
    from tilelang_npu.ops import dtype

    values = np.arange(1 << 16, dtype=np.uint16).view(dtype(kind).numpy)
    values = values[np.isfinite(values.astype(np.float32))] if finite else values
    for given in (values, values[::-3], np.lib.stride_tricks.sliding_window_view(values, 40)[::57]):
        found, expected = np.empty(given.shape, np.float32), given.astype(np.float32)
        widen(given, found)
        assert found.tobytes() == expected.tobytes()
        apart = np.empty((*given.shape[:-1], 2 * given.shape[-1]), np.float32)[..., :given.shape[-1]]
        widen(given, apart)
        assert apart.tobytes() == expected.tobytes()
