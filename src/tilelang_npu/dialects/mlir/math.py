"""math: xDSL does not verify shapes, and accepts no unranked tensors."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import math

from tilelang_npu.dialects.ir.declaration import extend_dialect, replace_rules, require
from tilelang_npu.dialects.mlir.rules import FLOATS, WHOLE, same_shape, verify_one_type

_WHOLE = ("math.absi", "math.ctlz", "math.cttz", "math.ctpop", "math.ipowi")
_FPOWI = "math.fpowi"


def _verify_fpowi(op: Any) -> None:
    require(same_shape(op.lhs.type, op.rhs.type), "requires the same shape for all operands and results")
    require(op.lhs.type == op.result.type, "failed to verify that all of {lhs, result} have same type")


def _with_rules(kind: Any) -> Any:
    definition = kind.get_irdl_definition()
    names = [name for name, _ in (*definition.operands, *definition.results)]
    if kind.name == _FPOWI:
        return replace_rules(kind, _verify_fpowi, lhs=FLOATS, rhs=WHOLE, result=FLOATS)
    kinds: dict[str, Any] = dict.fromkeys(names, WHOLE if kind.name in _WHOLE else FLOATS)
    return replace_rules(kind, verify_one_type, **kinds)


Math = extend_dialect(math.Math, *(
    _with_rules(kind) for kind in math.Math.operations if kind.name not in ("math.isnan", "math.sincos")))
