"""The ops of math, which in xDSL do not check shapes, and take no tensor whose shape is not known."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import math

from tilelang_npu.dialects.ir.declaration import extend_dialect, replace_rules
from tilelang_npu.dialects.mlir.rules import FLOATS, WHOLE, one_type, require, same_shape

_WHOLE = ("math.absi", "math.ctlz", "math.cttz", "math.ctpop", "math.ipowi")
_OF_TWO_KINDS = "math.fpowi"


def _raises(op: Any) -> None:
    require(same_shape(op.lhs.type, op.rhs.type), "requires the same shape for all operands and results")
    require(op.lhs.type == op.result.type, "failed to verify that all of {lhs, result} have same type")


def _ruled(kind: Any) -> Any:
    definition = kind.get_irdl_definition()
    names = [name for name, _ in (*definition.operands, *definition.results)]
    if kind.name == _OF_TWO_KINDS:
        return replace_rules(kind, _raises, lhs=FLOATS, rhs=WHOLE, result=FLOATS)
    kinds: dict[str, Any] = dict.fromkeys(names, WHOLE if kind.name in _WHOLE else FLOATS)
    return replace_rules(kind, one_type, **kinds)


Math = extend_dialect(math.Math, *(_ruled(kind) for kind in math.Math.operations if kind.name not in ("math.isnan", "math.sincos")))
