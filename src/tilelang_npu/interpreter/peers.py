"""Executes the transfers between this card and other cards of its pod."""

from __future__ import annotations

from tilelang_npu.errors import TileError
from tilelang_npu.interpreter.host_buffers import TileRef, integer, memory_of
from tilelang_npu.interpreter.operation_table import tiles
from tilelang_npu.interpreter.running_core import current, fail
from tilelang_npu.interpreter.typed_scalars import Array
from tilelang_npu.interpreter.vectors import executes_here
from tilelang_npu.symmetric_heap import peer_to_read, peer_to_write


@tiles("shmem_put_nbi")
def put(dst: object, src: object, nelems: object, newPe: object) -> None:
    """Writes elements of this card to another card (``T.shmem_put_nbi``, ``T.shmem_ub_put_nbi``)."""
    _transfer(dst, src, nelems, newPe, 0, reads=False)


@tiles("shmem_ub_put_nbi")
def ub_put(ub: object, dst: object, nelems: object, newPe: object, strelem: object = 0) -> None:
    """Writes elements of a tile in UB to another card."""
    _transfer(dst, ub, nelems, newPe, integer(strelem), reads=False)


@tiles("shmem_get_nbi", "shmem_ub_get_nbi")
def get(dst: object, src: object, nelems: object, newPe: object) -> None:
    """Writes elements of another card to a tensor, or to a tile in UB, of this card."""
    _transfer(dst, src, nelems, newPe, 0, reads=True)


def _transfer(dst: object, src: object, nelems: object, rank: object, after: int, *, reads: bool) -> None:
    """Copies consecutive elements of which one side is in the memory of another card.

    Args:
        dst: the destination.
        src: the source.
        nelems: the number of elements.
        rank: the number of the other card.
        after: the number of elements between the first one of ``dst`` and the first one that is written.
        reads: whether the source is on the other card; otherwise the destination is.
    """
    target, source, count, card = memory_of(dst), memory_of(src), integer(nelems), integer(rank)
    if not executes_here(source, writes=target):
        return
    to, origin = (_elements(memory, first, count) for memory, first in ((target, after), (source, 0)))
    try:
        if reads:
            to[...] = peer_to_read(origin, card, current().location())
        else:
            peer_to_write(to, card, current().location())[...] = origin
    except TileError as error:
        raise error.at(current().location()) from None


def _elements(tile: TileRef, after: int, count: int) -> Array:
    flat: Array = tile.flat()
    if after < 0 or count < 0 or after + count > flat.size:
        raise fail(f"{count} elements from element {after} of {tile.describe()} are not inside the buffer",
                   "transfer fewer elements, or begin earlier", "T502")
    return flat[after:after + count]

