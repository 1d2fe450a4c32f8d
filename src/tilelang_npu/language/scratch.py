"""The argument ``tmp`` of the workspace operations of TileLang-Ascend: scratch memory that the author allocates.

AscendC's library needs bytes in UB for some operations; TileLang-Ascend allocates them, or takes them from ``tmp``. This
compiler allocates the scratch that an operation needs itself, so ``tmp`` saves no allocation. It is checked, and its contents
are undefined after the call, as on the hardware.
"""

from __future__ import annotations

from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language.operands import as_memory, is_dense, overlap, place_of, require_vector_memory
from tilelang_npu.target import BLOCK
from tilelang_npu.traced.buffers import Addressable
from tilelang_npu.traced.builder import Builder


def use_scratch(what: str, tmp: object, *operands: object, flat: bool = True) -> None:
    """Checks the argument ``tmp`` of a call, and emits that the call leaves the contents of ``tmp`` undefined.

    Args:
        what: the name of the call, for messages.
        tmp: the scratch buffer or slice; None for none.
        operands: the other operands of the call.
        flat: whether ``tmp`` must have one axis.

    Raises:
        TileError: T110, ``tmp`` is not a buffer; T111, it has several axes, or gaps, or begins at a byte that is not constant
            and a multiple of 32; T112, it shares elements with an operand; T201, it is not in UB.
    """
    if tmp is None:
        return
    memory = as_memory(what, "tmp", tmp)
    require_vector_memory(what, "tmp", memory)
    problem = ""
    if flat and memory.ndim != 1:
        problem = f"has {memory.ndim} axes"
    elif not is_dense(memory):
        problem = "has gaps between its elements"
    elif memory.ndim == 1:
        start = memory.offsets[memory.kept[0]] if memory.kept else 0
        if not isinstance(start, int):
            problem = "begins at an element that is not constant"
        elif start * memory.dtype.nbytes % BLOCK:
            problem = f"begins at byte {start * memory.dtype.nbytes}, which is not a multiple of {BLOCK}"
    if problem:
        raise TileError(f"{what}: tmp {memory.describe()} {problem}", code="T111",
                        help=f'pass a buffer with one axis, such as T.alloc_ub((1024,), "uint8"), or a slice of one that '
                             f"begins at a multiple of {BLOCK} bytes")
    for value in operands:
        if (isinstance(value, Addressable) or place_of(value) is not None) and overlap(
                memory, as_memory(what, "an operand", value)) in ("same", "partial"):
            raise TileError(f"{what}: tmp {memory.describe()} shares elements with an operand", code="T112",
                            help="give the scratch memory its own buffer, or its own part of a buffer")
    builder = Builder.running(what)
    builder.tile_op(tile.ScratchOp(memory.ssa(builder)), what)


__all__ = ["use_scratch"]
