"""The op tables: what every operation is called, takes, means and costs.

One entry per operation; the language functions, the dialect classes, the verifiers, the lowering, the simulator, the
cost model and the documentation look it up here and nowhere else. This package imports neither xDSL nor the front end.
"""

from typing import TYPE_CHECKING

from tilelang_npu.deferred import deferred
from tilelang_npu.target.dtypes import DType, dtype

if TYPE_CHECKING:
    from tilelang_npu.ops.spec import (
        Clause,
        Composite,
        Elementwise,
        Operation,
        Reduce,
        Refused,
        Shape,
        Structured,
        computed_in,
        seen_as,
    )
    from tilelang_npu.ops.table import composites, elementwise, operation, operations

__all__ = [
    "Clause", "Composite", "DType", "Elementwise", "Operation", "Reduce", "Refused", "Shape", "Structured", "composites",
    "computed_in", "dtype", "elementwise", "operation", "operations", "seen_as",
]

# importing the package takes element types alone
__getattr__ = deferred(__name__, {
    **dict.fromkeys(("Clause", "Composite", "Elementwise", "Operation", "Reduce", "Refused", "Shape", "Structured",
                     "computed_in", "seen_as"), "spec"),
    **dict.fromkeys(("composites", "elementwise", "operation", "operations"), "table")})
