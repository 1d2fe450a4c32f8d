"""The op tables: what every operation is called, takes, means and costs.

One entry per operation; the language functions, the dialect classes, the verifiers, the lowering, the simulator, the
cost model and the documentation look it up here and nowhere else. This package imports neither xDSL nor the front end.
"""

from tilelang_npu.ops.dtypes import DType, dtype
from tilelang_npu.ops.spec import Clause, Elementwise, Operation, Reduce, elementwise, operation, operations

__all__ = ["Clause", "DType", "Elementwise", "Operation", "Reduce", "dtype", "elementwise", "operation", "operations"]
