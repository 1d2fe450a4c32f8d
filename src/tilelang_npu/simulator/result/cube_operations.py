"""The number of operations of the Cube cores: all operations, and the useful ones, which do not involve padding.

A tile at the edge of a tensor is loaded in part and multiplied as a whole. To tell padding from data, the elements that each
load writes to L1 are tracked through L1 and L0 to the multiplications. A multiplication is useful if both operands were loaded
from a tensor. Data from a workspace or from the Vector cores count as loaded, because their origin is not tracked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.op_records import (
    Access,
    Event,
    Footprint,
    Mmad,
    Multiply,
    OpRecord,
    Stream,
    Transfer,
    footprint,
    number_of,
    value,
)

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Products:
    """Numbers of operations; each multiply-add counts as two.

    Attributes:
        done: the number of all operations.
        useful: the number of operations whose two operands both come from a tensor and not from padding.
    """

    done: float = 0.0
    useful: float = 0.0


def products(launch: Launch) -> dict[str, Products]:
    """Returns the operations of a launch by element type (MLIR spelling; ``hf32`` for f32 operands in HF32 mode)."""
    program = launch.recorded.program
    tiled = program.chip.through("M", "a", "b")
    done: dict[str, float] = defaultdict(float)
    useful: dict[str, float] = defaultdict(float)
    for index, stream, count in launch.recorded.distinct_streams:
        records = program.functions[index].records
        if any(isinstance(record.work, Mmad | Multiply) for record in records):
            for kind, found in _of_stream(records, stream, tiled).items():
                done[kind] += count * found.done
                useful[kind] += count * found.useful
    return {kind: Products(done[kind], useful[kind]) for kind in done if done[kind]}


@dataclass(frozen=True, eq=False)
class _Tile:
    """A tile that an op wrote to L1 or L0: its bytes, and a mask, by row and column, of the elements that come from a tensor; a
    mask of None means that all elements count as loaded."""

    place: Footprint
    loaded: Mask | None


def _of_stream(records: Sequence[OpRecord], stream: Stream, tiled: frozenset[str]) -> Mapping[str, Products]:
    writers = {record.number: [access for access in record.accesses if access.writes and access.memory in tiled]
               for record in records}
    done: dict[str, float] = defaultdict(float)
    useful: dict[str, float] = defaultdict(float)
    tiles: dict[str, dict[Footprint, _Tile]] = {memory: {} for memory in tiled}
    known: dict[object, _Tile] = {}
    shares: dict[object, float] = {}
    for event in stream:
        record = records[number_of(event)]
        work = record.work
        for access in writers[record.number]:
            tile = _written(record, event, access, tiles, known)
            _put(tiles[access.memory], tile)
        if isinstance(work, Mmad | Multiply):
            kind = "hf32" if isinstance(work, Mmad) and work.wide and work.element == "f32" else work.element
            sizes = value(work.m, event), value(work.k, event), value(work.n, event)
            operands = [(access, footprint(access, event)) for access in record.accesses if access.name in ("a", "b")]
            below = [_below(tiles[access.memory], place) for access, place in operands]
            key = (event, *(tuple(map(id, those)) for those in below))
            if key not in shares:
                turned = work.turned if isinstance(work, Mmad) else (False, False)
                masks = [_mask(place, those) for (_, place), those in zip(operands, below, strict=True)]
                if work.element == "i4":  # two elements in each byte
                    masks = [mask if mask is None else mask.repeat(2, axis=1) for mask in masks]
                shares[key] = _useful(sizes, [mask.T if turn and mask is not None else mask
                                              for mask, turn in zip(masks, turned, strict=True)])
            done[kind] += 2.0 * sizes[0] * sizes[1] * sizes[2]
            useful[kind] += shares[key]
    return {kind: Products(done[kind], useful[kind]) for kind in done}


def _written(record: OpRecord, event: Event, access: Access, tiles: Mapping[str, Mapping[Footprint, _Tile]],
             known: dict[object, _Tile]) -> _Tile:
    """Returns the tile that an execution of an op writes to L1 or L0.

    Args:
        record, event: the op and its execution.
        access: the write.
        tiles: the tiles that each memory holds before.
        known: cache of the results.
    """
    place = footprint(access, event)
    source = next((other for other in record.accesses if other.reads), None)
    below: list[_Tile] = []
    if source is not None and source.memory in tiles:
        below = _below(tiles[source.memory], footprint(source, event))
    key = event, access.name, tuple(map(id, below))
    if key not in known:
        loaded: Mask | None = None
        shape = _logical(place.sizes)
        if isinstance(record.work, Transfer) and shape is not None:
            if source is None:
                loaded = np.zeros(shape, np.bool_)
            elif source.memory == "gm":  # with more than two axes the elements are not tracked
                sizes = list(footprint(source, event).sizes)
                while len(sizes) > 2 and 1 in sizes:
                    sizes.remove(1)
                if len(sizes) == 2 and sizes[0] <= shape[0] and sizes[1] <= shape[1]:
                    loaded = np.zeros(shape, np.bool_)
                    loaded[:sizes[0], :sizes[1]] = True
            elif source.memory in tiles:
                loaded = _mask(footprint(source, event), below)
                loaded = loaded.T if loaded is not None and record.work.turned else loaded
                loaded = loaded if loaded is not None and loaded.shape == shape else None
        known[key] = _Tile(place, loaded)
    return known[key]


def _put(tiles: dict[Footprint, _Tile], tile: _Tile) -> None:
    """Adds a tile to those of a memory, and removes the tiles that the new tile overwrites completely."""
    place = tile.place
    dense = place.nbytes == place.end - place.offset
    for old in [old for old in tiles if old == place or (dense and place.offset <= old.offset and old.end <= place.end)]:
        del tiles[old]
    tiles[place] = tile


def _below(tiles: Mapping[Footprint, _Tile], place: Footprint) -> list[_Tile]:
    """Returns the tiles of a memory that overlap with an operand, in the order in which they were written."""
    return [tile for other, tile in tiles.items() if other.offset < place.end and place.offset < other.end]


def _logical(sizes: Sequence[int]) -> tuple[int, int] | None:
    """Returns the numbers of rows and columns of a matrix that is stored in fractals ``[C1, R1, r0, c0]`` or row by row; None
    for other shapes."""
    if len(sizes) == 4:
        return sizes[1] * sizes[2], sizes[0] * sizes[3]
    return (sizes[0], sizes[1]) if len(sizes) == 2 else None


def _mask(place: Footprint, tiles: Sequence[_Tile]) -> Mask | None:
    """Returns a mask, by row and column, of the elements of an operand that come from a tensor; None if the layout of the
    operand is unknown.

    Args:
        place: the operand.
        tiles: the tiles that overlap with it.
    """
    shape = _logical(place.sizes)
    if shape is None or any(tile.place.element != place.element for tile in tiles):
        return None
    start = min((tile.place.offset for tile in tiles), default=place.offset)
    start = min(start, place.offset)
    end = max([place.end, *(tile.place.end for tile in tiles)])
    memory = np.ones((end - start) // place.element, np.bool_)

    def view(of: Footprint) -> Mask:
        return np.ndarray(of.sizes, np.bool_, memory, (of.offset - start) // of.element,
                          tuple(stride // of.element for stride in of.strides))

    for tile in tiles:
        those = view(tile.place)
        if tile.loaded is None:
            those[...] = True
        elif those.ndim == 4:
            columns, rows, height, width = those.shape
            those[...] = tile.loaded.reshape(rows, height, columns, width).transpose(2, 0, 1, 3)
        else:
            those[...] = tile.loaded
    mine = view(place)
    return np.asarray(mine.transpose(1, 2, 0, 3).reshape(shape) if mine.ndim == 4 else mine)


def _useful(sizes: tuple[int, int, int], masks: Sequence[Mask | None]) -> float:
    """Returns the number of operations of a product whose two operands both come from a tensor.

    Args:
        sizes: m, k and n of the product.
        masks: for A and for B, which elements come from a tensor; None for all.
    """
    m, k, n = sizes
    left, right = masks
    rows = np.full(k, m) if left is None else left[:m, :k].sum(axis=0)
    columns = np.full(k, n) if right is None else right[:k, :n].sum(axis=1)
    return 2.0 * float(rows @ columns)


__all__ = ["Products", "products"]
