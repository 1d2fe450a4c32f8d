"""Ops that consist of a name, ``ins``, ``outs`` and attributes, as the named ops of linalg and of AscendNPU-IR's HFusion.

They compute on tensors, or in place on buffers. As in MLIR's custom form, the text leaves out the body that the name implies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import SSAValue

from tilelang_npu.dialects.ir.declaration import CountSegments, Rule, define_op, group
from tilelang_npu.dialects.ir.destination_style import StructuredTableOp

NUMBERS = DenseArrayBase.constr(i64)
INS_OUTS = f"{group('ins', 'src')} {group('outs', 'dst')}"
RESULT = " (`->` type($result)^)?"


class NamedOp(StructuredTableOp):
    """Base of the named ops; ``src`` are tensors, buffers or scalars, ``dst`` the destinations."""

    BODY_FOLLOWS: ClassVar[bool] = True

    def reads_destination(self, target: SSAValue) -> bool:
        """The body of a named op may use the old values of a destination, as a product that accumulates does."""
        return True


def define_named_op(name: str, doc: str, *, properties: Mapping[str, Any] | None = None, head: str = "", tail: str = "",
                    result: str = RESULT, rules: Sequence[Rule] = (), counted: CountSegments | None = None) -> type[NamedOp]:
    """Returns the class of a named op.

    Args:
        name: the op's name with its dialect.
        doc: what the op computes.
        properties: as for :func:`define_op`; a property that the toolchain has a default for is optional.
        head, tail: the format before ``ins`` and after ``outs``.
        result: the format of the result types.
        rules: checks that run after the verification of the types.
        counted: the numbers of inputs and destinations by the number of operands, where MLIR does not state them.
    """
    return define_op(NamedOp, name, doc, operands={"src*": None, "dst*": None}, results={"result*": None},
                     properties=properties, text=f"attr-dict {head} {INS_OUTS}{tail}{result}", rules=rules, counted=counted)
