"""HIVM, the dialect of AscendNPU-IR whose ops are instructions of pipes on buffers.

Ops, attributes, properties and assembly are those of the real dialect (master 52f96a13), so the real toolchain parses the
text in both forms. Ops are classes (``hivm.LoadOp``, ``hivm.VAddOp``), whose constructors take values and plain Python facts.
The elementwise vector ops are made from the op table (``hivm.elementwise_op("vadd")``). Ops that no pass builds are rows of
tables (``define_op`` of ``dialects/ir/declaration.py``).
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
from tilelang_npu.dialects.hivm.elementwise import CLASSES, ElementwiseOp
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

OPERATIONS: tuple[type[Operation], ...] = (
    *CLASSES.values(), *vector.OPERATIONS, *dma.OPERATIONS, *fixpipe.OPERATIONS, *cube.OPERATIONS, *global_matmul.OPERATIONS,
    *sync.OPERATIONS, *scalar.OPERATIONS, *custom.OPERATIONS, *simt.OPERATIONS)
"""Every op of the dialect."""

Hivm = Dialect("hivm", [*OPERATIONS], [*ATTRIBUTES])

globals().update({made.__name__: made for made in CLASSES.values()})

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[ElementwiseOp]: ...
