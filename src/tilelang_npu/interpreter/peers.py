"""Executes the transfers and signals between this card and other cards of its pod."""

from __future__ import annotations

from tilelang_npu.card_signals import BarrierWait, SignalWait, complete_puts, finish_puts, send_signal
from tilelang_npu.errors import TileError
from tilelang_npu.interpreter.host_buffers import HostBuffer, TileRef, integer, memory_of
from tilelang_npu.interpreter.launch import running_launch
from tilelang_npu.interpreter.operation_table import tiles
from tilelang_npu.interpreter.running_core import current, fail, wait_for_card
from tilelang_npu.interpreter.sync import sync_all
from tilelang_npu.interpreter.typed_scalars import Array
from tilelang_npu.interpreter.vectors import executes_here
from tilelang_npu.symmetric_heap import add_to_peer, peer_to_read, peer_to_write


@tiles("shmem_put_nbi")
def put(dst: object, src: object, nelems: object, newPe: object) -> None:
    """Writes elements of this card to another card (``T.shmem_put_nbi``, ``T.shmem_ub_put_nbi``)."""
    _transfer(dst, src, nelems, newPe, 0, reads=False)


@tiles("shmem_ub_put_nbi")
def ub_put(ub: object, dst: object, nelems: object, newPe: object, strelem: object = 0) -> None:
    """Writes elements of a tile in UB to another card: at most those of a whole buffer."""
    if isinstance(nelems, int) and isinstance(ub, HostBuffer):
        nelems = min(nelems, ub.array.size)
    _transfer(dst, ub, nelems, newPe, integer(strelem), reads=False)


@tiles("shmem_ub_atomic_add_nbi")
def ub_add(ub: object, dst: object, nelems: object, newPe: object, strelem: object = 0) -> None:
    """Adds elements of a tile in UB to another card's."""
    _transfer(dst, ub, nelems, newPe, integer(strelem), reads=False, adds=True)


@tiles("shmem_get_nbi", "shmem_ub_get_nbi")
def get(dst: object, src: object, nelems: object, newPe: object) -> None:
    """Writes elements of another card to a tensor, or to a tile in UB, of this card."""
    _transfer(dst, src, nelems, newPe, 0, reads=True)


def _transfer(dst: object, src: object, nelems: object, rank: object, after: int, *, reads: bool, adds: bool = False) -> None:
    """Copies consecutive elements of which one side is in the memory of another card.

    Args:
        dst: the destination.
        src: the source.
        nelems: the number of elements.
        rank: the number of the other card.
        after: the number of elements between the first one of ``dst`` and the first one that is written.
        reads: whether the source is on the other card; otherwise the destination is.
        adds: whether the elements are added to those of the destination.
    """
    target, source, count, card = memory_of(dst), memory_of(src), integer(nelems), integer(rank)
    if not executes_here(source, writes=target):
        return
    current().acts()
    to, origin = (_elements(memory, first, count) for memory, first in ((target, after), (source, 0)))
    try:
        if reads:
            to[...] = peer_to_read(origin, card, current().location())
        elif adds:
            add_to_peer(to, origin, card, current().location(), _core())
        else:
            peer_to_write(to, card, current().location(), _core())[...] = origin
    except TileError as error:
        raise error.at(current().location()) from None


def _elements(tile: TileRef, after: int, count: int) -> Array:
    flat: Array = tile.flat()
    if after < 0 or count < 0 or after + count > flat.size:
        raise fail(f"{count} elements from element {after} of {tile.describe()} are not inside the buffer",
                   "transfer fewer elements, or begin earlier", "T502")
    return flat[after:after + count]



# --- signals ---------------------------------------------------------------------------------------------------------------


@tiles("shmem_signal_op")
def signal_op(signal: object, offset: object, value: object, sig_op: int, pe: object) -> None:
    """Sets a word of another card, or adds to it."""
    word = _elements(memory_of(signal), integer(offset), 1)
    current().acts()
    if _signals_here():
        try:
            send_signal(word, integer(value), sig_op == 1, integer(pe), current().location(), _core())
        except TileError as error:
            raise error.at(current().location()) from None


@tiles("shmem_signal_wait_until")
def signal_wait_until(signal: object, offset: object, cmp: int, value: object) -> None:
    """Waits until a word of this card compares with a number as stated."""
    memory = memory_of(signal)
    word = _elements(memory, integer(offset), 1)
    if _signals_here():
        try:
            wait_for_card(SignalWait(word, cmp, integer(value), memory.describe(), current().location(), _core()))
        except TileError as error:
            raise error.at(current().location()) from None


@tiles("shmem_quiet", "shmem_mte_quiet", "shmem_fence")
def quiet() -> None:
    """States that the puts of this core have ended, as they have when the interpreter has executed them."""
    if _signals_here():
        complete_puts(_core())


@tiles("shmem_barrier_all")
def barrier_all() -> None:
    """Waits until all Vector cores of all cards have reached the barrier."""
    barrier(0)


@tiles("shmem_barrier")
def barrier(team: object) -> None:
    """Waits until all Vector cores of the cards of a team have reached the barrier."""
    if _signals_here():
        core = current()
        sync_all("AIVOnly" if core.scope is None else None)
        takes_part = core.kind == "all" or (core.block, core.vector) == (0, 0)
        wait_for_card(BarrierWait(integer(team), takes_part, core.location(), _core()))
        sync_all("AIVOnly" if core.scope is None else None)


@tiles("barrier_all", "pipe_barrier")
def pipe_barrier(pipe: object = "all") -> None:
    """States that the puts of this core have ended if the pipes that make them are idle."""
    if str(pipe).lower() in ("all", "mte3") and _signals_here():
        finish_puts(_core())


def _signals_here() -> bool:
    """Whether the core that is being executed sends the signals, and waits for those, of the current statement."""
    return current().executes("vector") and not running_launch().probing


def _core() -> tuple[str, int, int]:
    core = current()
    return core.kind, core.block, core.vector


