"""The op tables: what every operation is called, takes, means and costs.

One entry per operation; the language functions, the dialect classes, the verifiers, the lowering, the simulator, the
cost model and the documentation look it up here and nowhere else. This package imports neither xDSL nor the front end.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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


def __getattr__(name: str) -> object:
    # importing the package takes element types alone; the entries and what they are made of, whoever asks for one
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    home = "table" if name in ("composites", "elementwise", "operation", "operations") else "spec"
    found: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found
