"""HIVM, the dialect of AscendNPU-IR that says which instruction of which pipe does what to which buffer.

Ops, attributes, properties and assembly are those of the real dialect (master 52f96a13), so both forms of the text are
read by the real toolchain. Ops are classes (``hivm.LoadOp``, ``hivm.VAddOp``); their constructors take values and plain
Python facts. The elementwise vector ops are made from the op table: ``hivm.elementwise_op("vadd")``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Attribute, Dialect, Operation

from tilelang_npu.dialects.declaration import DialectOp
from tilelang_npu.dialects.hivm import cube, custom, dma, fixpipe, global_matmul, lanes, scalar, simt, sync, vector
from tilelang_npu.dialects.hivm import elementwise as _elementwise
from tilelang_npu.dialects.hivm.attributes import (
    ATTRIBUTES,
    BlockAttr,
    DataLayoutAttr,
    RemainInL0CAttr,
    SyncEventSlotAttr,
    TightlyCoupledBufferAttr,
    address_space,
    event,
    pipe,
    space_of,
)
from tilelang_npu.dialects.hivm.cube import *  # noqa: F403
from tilelang_npu.dialects.hivm.custom import *  # noqa: F403
from tilelang_npu.dialects.hivm.dma import *  # noqa: F403
from tilelang_npu.dialects.hivm.elementwise import ElementwiseOp, elementwise_op
from tilelang_npu.dialects.hivm.enums import *  # noqa: F403
from tilelang_npu.dialects.hivm.fixpipe import *  # noqa: F403
from tilelang_npu.dialects.hivm.global_matmul import *  # noqa: F403
from tilelang_npu.dialects.hivm.lanes import *  # noqa: F403
from tilelang_npu.dialects.hivm.scalar import *  # noqa: F403
from tilelang_npu.dialects.hivm.simt import *  # noqa: F403
from tilelang_npu.dialects.hivm.structured import StructuredOp, mlir_type
from tilelang_npu.dialects.hivm.sync import *  # noqa: F403
from tilelang_npu.dialects.hivm.vector import *  # noqa: F403

OPERATIONS: tuple[type[Operation], ...] = (
    *_elementwise.CLASSES.values(), *vector.OPERATIONS, *lanes.OPERATIONS, *dma.OPERATIONS, *fixpipe.OPERATIONS,
    *cube.OPERATIONS, *global_matmul.OPERATIONS, *sync.OPERATIONS, *scalar.OPERATIONS, *custom.OPERATIONS, *simt.OPERATIONS)
"""Every op of the dialect."""

Hivm = Dialect("hivm", [*OPERATIONS], [*ATTRIBUTES])

globals().update({made.__name__: made for made in _elementwise.CLASSES.values()})

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[ElementwiseOp]: ...


__all__ = [
    "ATTRIBUTES", "OPERATIONS", "Attribute", "BlockAttr", "DataLayoutAttr", "DialectOp", "ElementwiseOp", "Hivm",
    "RemainInL0CAttr", "StructuredOp", "SyncEventSlotAttr", "TightlyCoupledBufferAttr", "address_space", "elementwise_op",
    "event", "mlir_type", "pipe", "space_of",
]
