"""Which bytes of a tensor a launch reads and writes: counts against NumPy, figures of one block and one line, the picture."""

from __future__ import annotations

import inspect
import json
import re
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.simulator import Launch
from tilelang_npu.simulator.result import access_map

ROWS, COLUMNS, TILE, HALO = 96, 40, 16, 8


@tilelang.jit(out_idx=[-1], target="npuir")
def stencil(rows, columns, tile, halo):
    """Each block reads its rows twice, and ``halo`` rows after them once; the last block has none after its rows."""
    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(rows // tile, is_npu=True) as (block, _):
            own = T.alloc_ub((tile, columns), "float32")
            more = T.alloc_ub((tile + halo, columns), "float32")
            T.copy(X[block * tile, 0], own)
            T.copy(X[block * tile:block * tile + tile + halo, 0:columns], more)
            T.vadd(own, own, own)
            T.copy(own, Y[block * tile, 0])

    return main


@tilelang.jit(out_idx=[-1], target="npuir")
def columns_of(rows, columns, tile):
    """Each block reads and writes a strip of columns."""
    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float16"), Y: T.Tensor((rows, columns), "float16")):
        with T.Kernel(columns // tile, is_npu=True) as (block, _):
            x = T.alloc_ub((rows, tile), "float16")
            T.copy(X[0, block * tile], x)
            T.vmul(x, 2.0, x)
            T.copy(x, Y[0, block * tile])

    return main


def _launched(kernel: object, array: NDArray[np.generic]) -> Launch:
    kernel(array)  # type: ignore[operator]  # a compiled kernel
    launch = kernel.last_launch  # type: ignore[attr-defined]
    assert isinstance(launch, Launch)
    return launch


@cache
def rows_of() -> Launch:
    return _launched(stencil(ROWS, COLUMNS, TILE, HALO), np.ones((ROWS, COLUMNS), np.float32))


def reads() -> NDArray[np.int64]:
    """Returns how often each row of the stencil's input is read."""
    times = np.zeros(ROWS, np.int64)
    for start in range(0, ROWS, TILE):
        times[start:start + TILE] += 1
        times[start:start + TILE + HALO] += 1
    return times


def test_reads_are_counted_as_numpy_counts_them() -> None:
    found = rows_of().access_map("X", block=2)
    row, times = COLUMNS * 4, reads()
    assert found.shape == (ROWS, COLUMNS)
    assert (found.nbytes, found.moved, found.accessed) == (ROWS * row, times.sum() * row, ROWS * row)
    assert found.most == times.max() == 3
    assert found.shared == np.count_nonzero(times == 3) * row, "rows that a block and the one before it read"
    assert (found.own_accessed, found.own_moved) == ((TILE + HALO) * row, (2 * TILE + HALO) * row)
    assert found.blocks == found.of == ROWS // TILE


def test_writes_are_counted_apart_from_reads() -> None:
    found = rows_of().access_map("Y", written=True)
    assert (found.moved, found.accessed, found.most, found.shared) == (found.nbytes, found.nbytes, 1, 0)


def test_a_line_has_its_own_accesses() -> None:
    lines, first = inspect.getsourcelines(stencil.func if hasattr(stencil, "func") else stencil)
    number = first + next(place for place, line in enumerate(lines) if ", own)" in line and "X[" in line)
    found = rows_of().access_map("X", line=number)
    assert (found.most, found.moved) == (1, found.nbytes)
    with pytest.raises(TileError, match="reads no byte of X in line 1") as error:
        rows_of().access_map("X", line=1)
    assert error.value.code == "T412"


def test_strips_of_columns_are_framed_where_they_are() -> None:
    launch = _launched(columns_of(24, 96, 32), np.ones((24, 96), np.float16))
    found = launch.access_map("X", block=1)
    assert found.moved == found.accessed == 24 * 96 * 2
    assert found.own_accessed == 24 * 32 * 2
    columns = found.own.shape[1]
    assert columns % 3 == 0
    expected = np.zeros_like(found.own)
    expected[:, columns // 3:2 * columns // 3] = 1
    np.testing.assert_array_equal(found.own, expected)


def test_cells_are_the_means_of_their_bytes() -> None:
    found = rows_of().access_map("X")
    rows = found.times.shape[0]
    assert rows <= access_map.MOST_ROWS
    assert ROWS % rows == 0
    np.testing.assert_allclose(found.times.mean(axis=1), reads().reshape(rows, -1).mean(axis=1))


def test_the_picture_has_the_counts_and_one_frame() -> None:
    found = rows_of().access_map("X", block=2)
    svg = ElementTree.fromstring(str(found.picture()))
    rects = [one for one in svg.iter() if one.tag.endswith("rect")]
    area = sum(float(one.get("width", "")) * float(one.get("height", "")) for one in rects)
    assert area == pytest.approx(access_map.WIDTH * found.times.shape[0] * 6), "every byte is read"
    assert {one[0].text for one in rects} >= {"2 times", "3 times"}
    frame = " ".join(one.get("d", "") for one in svg.iter() if one.get("class") == "own")
    tops = [float(y) for y in re.findall(r"M[\d.]+ ([\d.]+)[hv]", frame)]
    row = found.times.shape[0] * 6 / ROWS
    assert min(tops) == pytest.approx(20 + 2 * TILE * row, abs=6)
    assert max(tops) == pytest.approx(20 + (3 * TILE + HALO) * row, abs=6)


def test_the_text_has_the_figures() -> None:
    text = str(rows_of().access_map("X", block=2))
    assert text == ("X [96 x 40]: 37,120 of 15,360 B read by 6 blocks; each of 15,360 B 2.42 times, at most 3; "
                    "6,400 B by several blocks; block 2: 3,840 B, 2,560 B of them again")
    assert "once" in str(rows_of().access_map("Y", written=True))


def test_figures_can_be_written_as_json() -> None:
    data = rows_of().access_map("X").to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["shape"] == [ROWS, COLUMNS]


def test_of_a_launch_with_too_many_accesses_every_nth_block_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_map, "MOST_ACCESSES", 6)
    found = rows_of().access_map("Y", written=True, block=0)
    assert (found.blocks, found.of) == (6, 6)
    found = rows_of().access_map("X", block=1)
    assert (found.blocks, found.of) == (4, 6), "blocks 0, 2, 4, and block 1 that was asked for"
    assert "read by 4 blocks of 6, the others are not counted" in str(found)


@pytest.mark.parametrize(("tensor", "options", "message"), [
    ("Z", {}, "accesses no tensor 'Z'"), ("Y", {}, "reads no byte of Y"), ("X", {"written": True}, "writes no byte of X"),
    ("X", {"block": 6}, "no block 6")])
def test_what_was_not_accessed_is_refused(tensor: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(TileError, match=re.escape(message)) as error:
        rows_of().access_map(tensor, **options)  # type: ignore[arg-type]
    assert error.value.code == "T412"
    assert error.value.help


def test_too_large_a_tensor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_map, "MOST_BYTES", 1000)
    with pytest.raises(TileError, match="too many to follow"):
        rows_of().access_map("X")


def test_the_page_of_a_profile_has_all_tensors() -> None:
    text = rows_of().profile().html().partition("<h2>Tensors</h2>")[2]
    assert text.count("<figure>") == 2
    assert "X, read, at most 3 times" in text
    assert "Y, written, at most once" in text
