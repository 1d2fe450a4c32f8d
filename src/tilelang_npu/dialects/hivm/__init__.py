"""HIVM, the dialect of AscendNPU-IR whose ops are instructions of pipes on buffers.

Ops, attributes, properties and assembly are those of AscendNPU-IR (master 52f96a13), so its toolchain parses the text in custom
and in generic form. Ops are classes (``hivm.LoadOp``, ``hivm.VAddOp``), whose constructors take SSA values and Python values.
The classes of the elementwise vector ops are generated from the op table (``hivm.elementwise_op("vadd")``). The classes of ops
that no pass builds are returned by ``define_op`` of ``dialects/ir/declaration.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Dialect, Operation

from tilelang_npu.dialects.hivm import cube, custom, dma, fixpipe, global_matmul, scalar, simt, sync, vector

# The names of the ops and attributes are listed once, in ``__all__`` of their modules.
from tilelang_npu.dialects.hivm.attributes import *  # noqa: F403  re-exported
from tilelang_npu.dialects.hivm.attributes import ATTRIBUTES
from tilelang_npu.dialects.hivm.cube import *  # noqa: F403  re-exported
from tilelang_npu.dialects.hivm.custom import *  # noqa: F403  re-exported
from tilelang_npu.dialects.hivm.dma import *  # noqa: F403  re-exported
from tilelang_npu.dialects.hivm.elementwise import *  # noqa: F403  re-exported
from tilelang_npu.dialects.hivm.elementwise import CLASSES, ElementwiseOp, define_elementwise
from tilelang_npu.dialects.hivm.entry_ops import *  # noqa: F403  re-exported
from tilelang_npu.dialects.hivm.entry_ops import STRUCTURED_CLASSES, define_structured
from tilelang_npu.dialects.hivm.enums import *  # noqa: F403  re-exported
from tilelang_npu.dialects.hivm.fixpipe import *  # noqa: F403  re-exported
from tilelang_npu.dialects.hivm.global_matmul import *  # noqa: F403  re-exported
from tilelang_npu.dialects.hivm.scalar import *  # noqa: F403  re-exported
from tilelang_npu.dialects.hivm.simt import *  # noqa: F403  re-exported
from tilelang_npu.dialects.hivm.sync import *  # noqa: F403  re-exported
from tilelang_npu.dialects.hivm.vector import *  # noqa: F403  re-exported
from tilelang_npu.dialects.ir.declaration import DialectOp as DialectOp
from tilelang_npu.dialects.ir.destination_style import StructuredOp as StructuredOp
from tilelang_npu.dialects.ir.mlir_dtypes import mlir_type as mlir_type
from tilelang_npu.ops import spec as ops

OPERATIONS: tuple[type[Operation], ...] = (
    *CLASSES.values(), *vector.OPERATIONS, *dma.OPERATIONS, *fixpipe.OPERATIONS, *cube.OPERATIONS, *global_matmul.OPERATIONS,
    *sync.OPERATIONS, *scalar.OPERATIONS, *custom.OPERATIONS, *simt.OPERATIONS)
"""Every op of the dialect."""

Hivm = Dialect("hivm", [*OPERATIONS], [*ATTRIBUTES])

globals().update({made.__name__: made for made in CLASSES.values()})


def _follow(entry: ops.Operation, added: bool) -> None:
    """Adds the op of an entry that a plug-in declares to the dialect, or removes it.

    Raises:
        ValueError: the dialect has an op with the mnemonic that is not made from a structured or elementwise entry.
    """
    built = isinstance(entry, ops.Structured) and entry.build is not None
    if entry.is_custom or built or not isinstance(entry, ops.Elementwise | ops.Structured) or isinstance(entry, ops.Composite):
        return
    name = f"hivm.hir.{entry.hivm}"
    known = next((made for made in Hivm._operations if made.name == name), None)
    if not added:
        if known is not None and known.ENTRY is entry:  # type: ignore[attr-defined]  # only classes of entries are removed
            Hivm._operations.remove(known)
            for classes in (CLASSES, STRUCTURED_CLASSES):
                classes.pop(entry.hivm, None)
        return
    if known is not None:
        msg = (f"op {entry.name!r}: the dialect has an op {name} already; make the entry {ops.CUSTOM!r}, or give `build`, "
               "which makes that op")
        raise ValueError(msg)
    Hivm._operations.append(define_elementwise(entry) if isinstance(entry, ops.Elementwise) else define_structured(entry))


ops.FOLLOWERS.append(_follow)

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[ElementwiseOp]: ...
