"""math: verifies shapes, which xDSL does not, and accepts unranked tensors, which xDSL rejects."""

from __future__ import annotations

from xdsl.dialects import math
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation

from tilelang_npu.dialects.ir.declaration import extend_dialect, replace_rules, require
from tilelang_npu.dialects.mlir.rules import FLOATS, WHOLE, Like, same_shape, verify_one_type

_WHOLE = ("math.absi", "math.ctlz", "math.cttz", "math.ctpop", "math.ipowi")
_FPOWI = "math.fpowi"


def _verify_fpowi(op: math.FPowIOp) -> None:
    require(same_shape(op.lhs.type, op.rhs.type), "requires the same shape for all operands and results")
    require(op.lhs.type == op.result.type, "failed to verify that all of {lhs, result} have same type")


def _with_rules(kind: type[Operation]) -> type[Operation]:
    assert issubclass(kind, IRDLOperation)
    definition = kind.get_irdl_definition()
    names = [name for name, _ in (*definition.operands, *definition.results)]
    if kind.name == _FPOWI:
        return replace_rules(kind, _verify_fpowi, lhs=FLOATS, rhs=WHOLE, result=FLOATS)
    kinds: dict[str, Like] = dict.fromkeys(names, WHOLE if kind.name in _WHOLE else FLOATS)
    return replace_rules(kind, verify_one_type, properties=None, **kinds)


Math = extend_dialect(math.Math, *(
    _with_rules(kind) for kind in math.Math.operations if kind.name not in ("math.isnan", "math.sincos")))
