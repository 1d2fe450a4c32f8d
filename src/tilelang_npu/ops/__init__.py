"""The op table: the name, the operands, the meaning and the cost of every operation.

There is one entry per operation. The language functions, the dialect classes, the verifiers, the lowering, the simulator, the
cost model and the documentation all read it. This package imports neither xDSL nor the front end.
"""

from typing import TYPE_CHECKING

from tilelang_npu.deferred import deferred
from tilelang_npu.target.dtypes import DType, dtype

if TYPE_CHECKING:
    from tilelang_npu.ops.spec import (
        Clause,
        Composite,
        Elementwise,
        MemoryMove,
        Operation,
        PeerMove,
        Reduce,
        Refused,
        Shape,
        Structured,
        computed_in,
        seen_as,
    )
    from tilelang_npu.ops.table import composites, elementwise, operation, operation_of_symbol, operations, rate_of

__all__ = [
    "Clause", "Composite", "DType", "Elementwise", "MemoryMove", "Operation", "PeerMove", "Reduce", "Refused", "Shape",
    "Structured", "composites", "computed_in", "dtype", "elementwise", "operation", "operation_of_symbol", "operations",
    "rate_of", "seen_as",
]

# Importing the package loads only the element types.
__getattr__ = deferred(__name__, {
    **dict.fromkeys(("Clause", "Composite", "Elementwise", "MemoryMove", "Operation", "PeerMove", "Reduce", "Refused", "Shape",
                     "Structured", "computed_in", "seen_as"), "spec"),
    **dict.fromkeys(("composites", "elementwise", "operation", "operation_of_symbol", "operations", "rate_of"), "table")})
