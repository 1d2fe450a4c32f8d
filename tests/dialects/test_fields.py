"""The fields of operands are those that xDSL reads, for every op of these dialects and every grouping of its operands."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, OptionalDef, VariadicDef
from xdsl.irdl.operations import get_accessors_from_op_def

from tilelang_npu.dialects.annotation import Annotation
from tilelang_npu.dialects.hfusion import HFusion
from tilelang_npu.dialects.hivm import Hivm
from tilelang_npu.dialects.ir.fields import accessors, operand_positions
from tilelang_npu.dialects.tile import Tile

KINDS = [op for dialect in (Hivm, HFusion, Tile, Annotation) for op in dialect.operations if issubclass(op, IRDLOperation)]
SIZES = {"one": (1,), "optional": (0, 1), "several": (0, 1, 3)}


def groups(kind: type[IRDLOperation]) -> list[tuple[int, ...]]:
    """Sizes that the groups of a class of ops can have."""
    several = [field for _, field in kind.get_irdl_definition().operands if isinstance(field, VariadicDef)]
    choices = [SIZES["optional" if isinstance(field, OptionalDef) else "several" if isinstance(field, VariadicDef) else "one"]
               for _, field in kind.get_irdl_definition().operands]
    found = list(product(*choices))
    stated = bool(accessors(kind.get_irdl_definition()))
    return found[:40] if stated or len(several) < 2 else []


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_fields_are_what_xdsl_reads(kind: type[IRDLOperation]) -> None:
    definition = kind.get_irdl_definition()
    theirs = get_accessors_from_op_def(definition, None)
    stated = any(isinstance(option, AttrSizedOperandSegments) for option in definition.options)
    for sizes in groups(kind):
        properties: dict[str, Any] = {"operandSegmentSizes": DenseArrayBase.from_list(i32, sizes)} if stated else {}
        op = kind.create(operands=test.TestOp(result_types=[i32] * sum(sizes)).results, properties=properties)
        if stated and "operandSegmentSizes" not in definition.properties:
            op.attributes = properties
        where = operand_positions(op)
        for name, _ in definition.operands:
            expected = theirs[name].__get__(op, kind)
            assert getattr(op, name) == expected, (name, sizes)
            flat = () if expected is None else tuple(expected) if isinstance(expected, tuple) else (expected,)
            assert tuple(op.operands[index] for index in where[name]) == flat


def test_a_field_cannot_be_set() -> None:
    kind = next(kind for kind in KINDS if accessors(kind.get_irdl_definition()))
    (name, *_) = accessors(kind.get_irdl_definition())
    with pytest.raises(AttributeError, match="by position"):
        setattr(kind.__new__(kind), name, None)
