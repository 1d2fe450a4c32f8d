"""The inputs of an op's cost besides its operands: one small class for each kind of op."""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_npu.simulator.machine.events import Slot


@dataclass(frozen=True)
class Nothing:
    """The op is free."""


@dataclass(frozen=True)
class Scalars:
    """Scalar instructions that run before a loop; the last one sets its counter."""


@dataclass(frozen=True)
class ScalarAccess:
    """The scalar unit reads or writes one element."""

    store: bool


@dataclass(frozen=True)
class Transfer:
    """A data movement; ``path`` names a row of the chip's paths, access 0 is the source and 1 the destination; ``turned``
    exchanges rows and columns."""

    path: str
    unit_flag: bool = False
    turned: bool = False


@dataclass(frozen=True)
class Lanes:
    """A vector instruction over the elements of a destination.

    Attributes:
        cost: row of the chip's vector rates.
        bits: width of the widest element type.
        shape: the access whose elements are counted.
        banked: the two accesses that may conflict in UB banks, or None.
        spread: rows that a broadcast along the last axis must expand first (``brcb``), or 0.
        times: how often the instruction runs over the elements.
    """

    cost: str
    bits: int
    shape: int
    banked: tuple[int, int] | None = None
    spread: Slot = 0
    times: int = 1


@dataclass(frozen=True)
class Sorting:
    """Sorts access ``shape`` as pairs of a value and its index, in groups of 32 by ``cost``; with ``merged``, groups are then
    merged four at a time until one is left."""

    cost: str
    shape: int
    merged: bool


@dataclass(frozen=True)
class Fold:
    """A reduction of access 0 along ``axes``: pairwise ``combine`` down to one repeat, then ``cost`` on the last axis."""

    cost: str
    combine: str
    bits: int
    axes: tuple[int, ...]


@dataclass(frozen=True)
class Mmad:
    """The matmul macro: loads from L1 to L0A and L0B and multiplications, chunk by chunk of K.

    Attributes:
        element: element type of the operands, MLIR spelling.
        wide: whether f32 operands are multiplied in HF32.
        m, k, n: sizes of the logical matrices.
        waits: events of MTE2 that the loads of A and of B wait for, -1 for none.
        frees: events to MTE2 that the loads of A and of B set when done, -1 for none.
        phase: iteration number, whose parity selects the half of L0; -1 outside of loops.
        halves: events from M to MTE1 that guard the halves of L0; -1 where the macro guards them itself.
        unit_flag: whether M and FIX synchronise on L0C block by block.
        bias: whether a bias is added.
        turned: whether A and B are stored in L1 with rows and columns exchanged.
    """

    element: str
    wide: bool
    m: Slot
    k: Slot
    n: Slot
    waits: tuple[Slot, Slot]
    frees: tuple[Slot, Slot]
    phase: Slot
    halves: tuple[Slot, Slot]
    unit_flag: bool
    bias: bool
    turned: tuple[bool, bool] = (False, False)


@dataclass(frozen=True)
class Multiply:
    """One product of the contents of L0A and L0B.

    Attributes:
        element: element type of the operands, MLIR spelling.
        m, k, n: sizes of the matrices.
    """

    element: str
    m: Slot
    k: Slot
    n: Slot


@dataclass(frozen=True)
class EventSet:
    """``set_flag``: sets an event for ``target`` after the earlier work of ``source``."""

    source: str
    target: str
    event: Slot


@dataclass(frozen=True)
class EventWait:
    """``wait_flag``: holds ``target`` until the event of ``source``."""

    source: str
    target: str
    event: Slot


@dataclass(frozen=True)
class Barrier:
    """``pipe_barrier`` on one pipe, or on all of them."""

    pipe: str


@dataclass(frozen=True)
class CrossSet:
    """Sets a flag on other cores after the earlier work of ``pipe``; ``group`` as in ``Rendezvous.group``."""

    pipe: str
    flag: Slot
    group: str


@dataclass(frozen=True)
class CrossWait:
    """Holds ``pipe`` until another core has set a flag."""

    pipe: str
    flag: Slot


Work = (Nothing | Scalars | ScalarAccess | Transfer | Lanes | Sorting | Fold | Mmad | Multiply | EventSet | EventWait | Barrier
        | CrossSet | CrossWait)
"""The inputs of some op's cost."""
