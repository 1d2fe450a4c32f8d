"""``T.any_of`` and ``T.all_of``: whether any or all elements of a buffer differ from zero, as a scalar."""

from __future__ import annotations

from collections.abc import Sequence

from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language.emitted_control import counted_loop
from tilelang_npu.language.operands import as_memory
from tilelang_npu.traced.arithmetic import binary, truth
from tilelang_npu.traced.buffers import Addressable, Tile, Variable
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent
from tilelang_npu.traced.ir_types import buffer_type
from tilelang_npu.traced.kinds import BOOL
from tilelang_npu.traced.scalars import Expr


def any_of(buffer: Tile) -> Expr:
    """Return whether any element of a buffer or slice in UB or GM differs from zero. The scalar unit reads element by element.

    Example: ``T.any_of(mask)``

    Raises:
        TileError: T110, the argument is not a buffer; T141, the call is inside ``T.Parallel``.
    """
    return _folded("T.any_of", "or", buffer)


def all_of(buffer: Tile) -> Expr:
    """Return whether all elements of a buffer or slice in UB or GM differ from zero. The scalar unit reads element by element.

    Example: ``T.all_of(mask)``

    Raises:
        TileError: T110, the argument is not a buffer; T141, the call is inside ``T.Parallel``.
    """
    return _folded("T.all_of", "and", buffer)


def _folded(what: str, combine: str, buffer: Tile) -> Expr:
    builder = Builder.running(what)
    memory = as_memory(what, "the buffer", buffer)
    builder.require_kernel(what)
    if builder.in_parallel:
        raise TileError(f"{what} cannot be used inside T.Parallel, whose body computes single elements", code="T141",
                        help="call it before the loop")
    op = builder.emit(tile.AllocOp("found", buffer_type(BOOL, (1,), "local")))
    found = Variable("found", BOOL, (1,), "local", op.results[0], builder.location)
    found.place.store(combine == "and")
    _visit(builder, memory, memory.extents, (), combine, found)
    return found.place.load()


def _visit(builder: Builder, memory: Addressable, extents: Sequence[Extent], indices: tuple[Expr, ...], combine: str,
           found: Variable) -> None:
    """Emits loops over the axes that have no index yet; the innermost one combines the element with ``found``."""
    if not extents:
        element = memory[indices] if indices else as_memory("", "", memory)[()]
        found.place.store(binary(builder, combine, found.place.load(), truth(builder, element)))
        return
    with counted_loop(builder, extents[0]) as index:
        _visit(builder, memory, extents[1:], (*indices, index), combine, found)
