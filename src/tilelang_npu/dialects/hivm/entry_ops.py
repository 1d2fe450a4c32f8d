"""Op classes that are generated from structured entries of the op table, for HIVM ops that have no hand-written class.

Plug-ins add such entries. The text of such an op is ``hivm.hir.NAME {attributes} ins(...) outs(...) -> results``; its
attributes are the attributes of the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, var_operand_def, var_result_def

from tilelang_npu.dialects.ir.declaration import group, operation
from tilelang_npu.dialects.ir.destination_style import SHAPED, TENSOR, StructuredOp, destination_style, results_for
from tilelang_npu.ops.spec import Structured

__all__ = ["STRUCTURED_CLASSES", "EntryOp", "structured_op"]

STRUCTURED_CLASSES: dict[str, type[EntryOp]] = {}
"""The generated op classes by mnemonic."""


class EntryOp(StructuredOp):
    """Base of the op classes that are generated from a structured entry; ``src`` are the inputs and ``dst`` the outputs.

    Attributes:
        ENTRY: the entry of the op table.
    """

    ENTRY: ClassVar[Structured]

    def __init__(self, inputs: Sequence[SSAValue | Operation], outputs: Sequence[SSAValue | Operation],
                 attributes: Mapping[str, Attribute] | None = None) -> None:
        """Builds the op; it has a result for each output that is a tensor."""
        IRDLOperation.__init__(self, operands=[list(inputs), list(outputs)], result_types=[results_for(*outputs)],
                               attributes=dict(attributes or {}))

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the destination is also an input."""
        return target in self.ins()

    def writes_partially(self) -> bool:
        """Whether the entry states that the operation may leave elements of its outputs unwritten."""
        return self.ENTRY.partial


def define_structured(entry: Structured) -> type[EntryOp]:
    """Returns the op class of an entry; defines the class unless an earlier entry with the same mnemonic did."""
    if entry.hivm in STRUCTURED_CLASSES:
        return STRUCTURED_CLASSES[entry.hivm]
    words = "".join(word[:1].upper() + word[1:] for word in entry.hivm.split("_"))
    fields: dict[str, object] = {
        "name": f"hivm.hir.{entry.hivm}",
        "__doc__": entry.doc,
        "__module__": __name__,
        "__annotations__": {},
        "src": var_operand_def(),
        "dst": var_operand_def(SHAPED),
        "result": var_result_def(TENSOR),
        "irdl_options": (AttrSizedOperandSegments(as_property=True),),
        "assembly_format": f"attr-dict {group('ins', 'src')} {group('outs', 'dst')} (`->` type($result)^)?",
    }
    made: type[EntryOp] = type(f"{words}Op", (EntryOp,), fields)
    made = operation(pipes=(entry.pipe,), core=entry.core, rules=(destination_style,))(made)
    made.ENTRY = entry
    STRUCTURED_CLASSES[entry.hivm] = made
    return made


def structured_op(mnemonic: str) -> type[EntryOp]:
    """Returns the op class with a mnemonic that was generated from a structured entry.

    Raises:
        KeyError: no generated class has the mnemonic.
    """
    return STRUCTURED_CLASSES[mnemonic]
