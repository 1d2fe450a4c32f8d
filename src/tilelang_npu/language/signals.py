"""The functions of ``T`` for signals between the cards of a pod, and for waiting for other cards inside of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilelang_npu.card_signals import COMPARISONS, SIGNAL_OPS
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.errors import TileError
from tilelang_npu.language.flat_memory import elements_from
from tilelang_npu.language.operands import as_memory
from tilelang_npu.target import GM
from tilelang_npu.traced.buffers import Tile
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import convert, extent
from tilelang_npu.traced.kinds import INT64
from tilelang_npu.traced.symbols import Number

__all__ = ["shmem_barrier", "shmem_barrier_all", "shmem_fence", "shmem_mte_quiet", "shmem_quiet", "shmem_signal_op",
           "shmem_signal_wait_until"]


def shmem_signal_op(signal: Tile, offset: Number, value: Number, sig_op: int, pe: Number) -> None:
    """Set a word of the card ``pe`` to a number, or add the number to it, to tell the card something.

    The word is element ``offset`` of the tensor ``signal``, as an int32, in the memory of the other card. The addition is
    atomic. Puts of this core that come before arrive before the signal only if ``T.shmem_quiet`` or ``T.shmem_fence`` is
    called between. The Vector core executes the statement, after all earlier operations have started; if a block has two
    Vector cores, each of them that reaches the statement sends a signal.

    Example: ``T.shmem_signal_op(flags, rank, 1, 0, (rank + 1) % ranks)``

    Args:
        signal: a tensor on the symmetric heap whose elements have 4 bytes, or a slice of it.
        offset: the number of elements between the first element of ``signal`` and the word.
        value: the number.
        sig_op: 0 to set the word, 1 to add to it.
        pe: the rank of the other card.

    Raises:
        TileError: T110, ``signal`` is on the chip, or its elements do not have 4 bytes; T111, the word is not in the tensor;
            T145, ``sig_op`` is neither 0 nor 1, or ``offset`` is negative; T161, the statement is in a ``T.Scope`` of the Cube
            core. While the kernel runs: T430, ``signal`` is not on the symmetric heap; T431, there is no such card.
    """
    what = "T.shmem_signal_op"
    if isinstance(sig_op, bool) or not isinstance(sig_op, int) or not 0 <= sig_op < len(SIGNAL_OPS):
        raise TileError(f"{what}: sig_op is {sig_op!r}", code="T145", help="pass 0 to set the word, or 1 to add to it")
    builder = _builder(what)
    word = _word(builder, what, signal, offset)
    _emit(builder, what, "shmem_signal_op", [word, _number(builder, value), builder.index(pe)], sig_op)


def shmem_signal_wait_until(signal: Tile, offset: Number, cmp: int, value: Number) -> None:
    """Wait until a word of this card, which other cards set, compares with a number as stated.

    The word is element ``offset`` of the tensor ``signal``, as an int32. Later operations of the core begin after the wait. All
    blocks of the kernel run at the same time, so there must be at most as many as cores.

    Example: ``T.shmem_signal_wait_until(flags, rank, 3, step + 1)``

    Args:
        signal, offset: as for ``T.shmem_signal_op``.
        cmp: 0 to wait until the word is equal to ``value``, 1 not equal, 2 greater, 3 greater or equal, 4 less, 5 less or
            equal.
        value: the number.

    Raises:
        TileError: T145, there is no such comparison; T110, T111, T161 and T430, as ``T.shmem_signal_op``. While the kernel
            runs: S308, the signal does not come; S304, there are more blocks than cores.
    """
    what = "T.shmem_signal_wait_until"
    if isinstance(cmp, bool) or not isinstance(cmp, int) or not 0 <= cmp < len(COMPARISONS):
        known = ", ".join(f"{number} for {text}" for number, (text, _) in enumerate(COMPARISONS))
        raise TileError(f"{what}: cmp is {cmp!r}", code="T145", help=f"the comparisons are {known}")
    builder = _builder(what)
    word = _word(builder, what, signal, offset)
    _emit(builder, what, "shmem_signal_wait_until", [word, _number(builder, value)], cmp)
    builder.tile_op(hivm.PipeBarrierOp("ALL"), what)


def shmem_quiet() -> None:
    """Wait until the transfers that this core has begun have ended, so that their data are in the memory of the other cards.

    Example: ``T.shmem_quiet()``

    Raises:
        TileError: T161, the statement is in a ``T.Scope`` of the Cube core.
    """
    _quiet("T.shmem_quiet")


def shmem_mte_quiet() -> None:
    """Wait until the transfers that this core has begun have ended, as ``T.shmem_quiet``.

    Example: ``T.shmem_mte_quiet()``

    Raises:
        TileError: as ``T.shmem_quiet``.
    """
    _quiet("T.shmem_mte_quiet")


def shmem_fence() -> None:
    """Let the puts and signals before this statement reach each card before those after it.

    It waits until the transfers have ended, as ``T.shmem_quiet``; so does CANN's.

    Example: ``T.shmem_fence()``

    Raises:
        TileError: as ``T.shmem_quiet``.
    """
    _quiet("T.shmem_fence")


def shmem_barrier_all() -> None:
    """Let all Vector cores of all cards wait until each of them has reached this statement and its transfers have ended.

    All blocks of the kernel run at the same time, so there must be at most as many as cores.

    Example: ``T.shmem_barrier_all()``

    Raises:
        TileError: T161, the statement is in a ``T.Scope`` of the Cube core. While the kernel runs: S308, a card does not reach
            the barrier; S304, there are more blocks than cores; T434, there is no pod.
    """
    _barrier("T.shmem_barrier_all", 0)


def shmem_barrier(team: Number) -> None:
    """Let all Vector cores of the cards of a team wait until each of them has reached this statement, as
    ``T.shmem_barrier_all``.

    Example: ``T.shmem_barrier(team)``

    Args:
        team: the number of the team, which ``shmem.team_split_strided`` or ``Card.team`` has returned.

    Raises:
        TileError: as ``T.shmem_barrier_all``, and T431, the card is in no such team.
    """
    _barrier("T.shmem_barrier", team)


def _builder(what: str) -> Builder:
    builder = Builder.running(what)
    builder.require_kernel(what)
    if builder.core == "cube":
        raise TileError(f"{what}: the Cube core exchanges no signals with other cards", code="T161",
                        help='move the statement to a T.Scope("V")')
    return builder


def _number(builder: Builder, value: object) -> SSAValue:
    return convert(builder, value, INT64).ssa(builder)


def _word(builder: Builder, what: str, signal: object, offset: object) -> SSAValue:
    memory = as_memory(what, "the signal", signal)
    if memory.buffer.space != GM:
        raise TileError(f"{what}: {memory.describe()} is on the chip", code="T110",
                        help="signals are elements of a tensor on the symmetric heap")
    if memory.dtype.nbytes != 4:
        raise TileError(f"{what}: {memory.describe()} has elements of {memory.dtype}", code="T110",
                        help="declare the tensor of signals as int32")
    after = extent(builder, offset)
    if isinstance(after, int) and after < 0:
        raise TileError(f"{what}: the offset is {after}", code="T145", help="pass an integer that is not negative")
    return elements_from(builder, what, memory, 1, after).ssa(builder)


def _emit(builder: Builder, what: str, name: str, values: Sequence[SSAValue], how: int = 0) -> None:
    builder.tile_op(tile.SignalOp(name, values, how), what)


def _quiet(what: str) -> None:
    builder = _builder(what)
    builder.tile_op(hivm.PipeBarrierOp("ALL"), what)
    _emit(builder, what, "shmem_quiet", [])


def _barrier(what: str, team: object) -> None:
    builder = _builder(what)

    def meet() -> None:
        builder.tile_op(hivm.PipeBarrierOp("ALL"), what)
        builder.tile_op(hivm.barrier_of_cores("vector"), what)

    meet()
    _emit(builder, what, "shmem_barrier", [_number(builder, team)])
    meet()
