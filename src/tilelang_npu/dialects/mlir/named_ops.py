"""The base class of named ops, such as those of linalg and of AscendNPU-IR's HFusion.

A named op is a structured op whose name implies its body. It has inputs (``ins``), destinations (``outs``) and attributes, and
computes on tensors, or in place on buffers. As in MLIR's custom form, its text omits the body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import SSAValue

from tilelang_npu.dialects.ir.declaration import CountSegments, Rule, define_op, group
from tilelang_npu.dialects.ir.destination_style import StructuredTableOp

NUMBERS = DenseArrayBase.constr(i64)
INS_OUTS = f"{group('ins', 'src')} {group('outs', 'dst')}"
RESULT = " (`->` type($result)^)?"


class NamedOp(StructuredTableOp):
    """Base of the named ops; ``src`` are the inputs (tensors, buffers or scalars), ``dst`` the destinations."""

    BODY_FOLLOWS: ClassVar[bool] = True

    def reads_destination(self, target: SSAValue) -> bool:
        """Returns True: the body of a named op may read the old values of a destination, as an accumulating product does."""
        return True


def define_named_op(name: str, doc: str, *, properties: Mapping[str, object] | None = None, head: str = "", tail: str = "",
                    result: str = RESULT, rules: Sequence[Rule] = (), counted: CountSegments | None = None) -> type[NamedOp]:
    """Returns the class of a named op.

    Args:
        name: the op's name, with the dialect.
        doc: the docstring of the class.
        properties: as for :func:`define_op`; a property with a default in the toolchain must be optional.
        head: the assembly format before ``ins``.
        tail: the assembly format after ``outs``.
        result: the assembly format of the result types.
        rules: checks that run after the types were verified.
        counted: returns the numbers of inputs and destinations for a number of operands, if MLIR's text does not state them.
    """
    return define_op(NamedOp, name, doc, operands={"src*": None, "dst*": None}, results={"result*": None},
                     properties=properties, text=f"attr-dict {head} {INS_OUTS}{tail}{result}", rules=rules, counted=counted)
