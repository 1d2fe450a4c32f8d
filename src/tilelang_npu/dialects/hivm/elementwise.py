"""The elementwise vector ops; one class per HIVM op of ``ops.elementwise()`` is generated from the op table.

The entry of the op table determines the inputs of the op, the inputs that may be scalars, the element types that the
toolchain's verifier accepts, the temporary buffer, and the clauses in the order of the assembly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    VarOperand,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
    var_result_def,
)

from tilelang_npu.dialects import hacc
from tilelang_npu.dialects.hivm.attributes import boolean, integers
from tilelang_npu.dialects.hivm.casts import cast_name, is_supported_cast
from tilelang_npu.dialects.hivm.enums import CompareModeAttr, RoundModeAttr, TypeFnAttr
from tilelang_npu.dialects.hivm.traits import (
    BOOL,
    I64_ARRAY,
    NO_AXES,
    axes,
    broadcastable,
    element_types,
    nary,
    no_broadcast_with_transpose,
    same_element_type,
    same_rank,
    transposable,
    vector_only,
)
from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr
from tilelang_npu.dialects.ir.declaration import Operand, Rule, fail, group, operation
from tilelang_npu.dialects.ir.destination_style import MEMREF, SHAPED, TENSOR, StructuredOp, destination_style, results_for
from tilelang_npu.dialects.ir.mlir_dtypes import dtypes, element_type
from tilelang_npu.ops.spec import Clause, Elementwise
from tilelang_npu.ops.table import elementwise

__all__ = [
    "CLASSES", "ElementwiseOp", "elementwise_op",
]

_CLAUSE_ENUMS: dict[str, type[EnumAttr]] = {
    "compare_mode": CompareModeAttr, "round_mode": RoundModeAttr, "cast": TypeFnAttr}


class ElementwiseOp(StructuredOp):
    """Base of the elementwise vector ops.

    ``src`` are the inputs and ``dst`` the destinations. ``temp_buffer`` is temporary memory that the toolchain adds.
    ``broadcast`` lists the axes along which inputs of size 1 are repeated. ``transpose`` permutes the axes of the inputs.

    Attributes:
        ENTRY: the entry of the op table from which the class was generated.
    """

    ENTRY: ClassVar[Elementwise]

    if TYPE_CHECKING:
        src: VarOperand
        dst: VarOperand

    def __init__(self, inputs: Sequence[SSAValue | Operation], outputs: Sequence[SSAValue | Operation], *,
                 temp_buffer: SSAValue | Operation | None = None, broadcast: Sequence[int] = (),
                 transpose: Sequence[int] = (), **clauses: bool | str | Attribute) -> None:
        """Builds the op.

        Args:
            inputs: the inputs: buffers, tensors or, if the op accepts them, scalars.
            outputs: the destinations; the op has a result for each tensor.
            temp_buffer: a temporary buffer.
            broadcast: the axes along which inputs have size 1 and are repeated.
            transpose: the permutation of the axes of the inputs.
            clauses: the attributes that only this op has, such as ``compare_mode="lt"`` or ``round_mode="rint"``.

        Raises:
            TypeError: the op has no such clause, or has no temporary buffer.
        """
        entry = self.ENTRY
        known = {clause.name: clause for clause in entry.clauses}
        properties: dict[str, Attribute] = {"broadcast": integers(broadcast), "transpose": integers(transpose)}
        for name, given in clauses.items():
            if name not in known:
                msg = f"hivm.hir.{entry.hivm} has no attribute {name!r}; it has: {', '.join(known) or 'none'}"
                raise TypeError(msg)
            clause = known[name]
            value = _clause_value(clause, given)
            if not clause.optional or value != _clause_value(clause, clause.default):
                properties[name] = value
        operands: list[Sequence[Operand] | Operand | None] = [list(inputs), list(outputs)]
        if entry.temp_buffer:
            operands.append(temp_buffer)
        elif temp_buffer is not None:
            msg = f"hivm.hir.{entry.hivm} has no temp_buffer"
            raise TypeError(msg)
        IRDLOperation.__init__(self, operands=operands, result_types=[results_for(*outputs)], properties=properties)

    def role(self, field: str, index: int) -> str:
        """Returns ``src0``, ``src1``, ... for the inputs, which are the first operands, else the usual role."""
        return f"src{index}" if field == "src" else super().role(field, index)

    @property
    def broadcast_axes(self) -> tuple[int, ...]:
        """The axes along which inputs of size 1 are repeated."""
        return axes(self, "broadcast")

    @property
    def transpose_axes(self) -> tuple[int, ...]:
        """The permutation of the axes of the inputs; empty if the axes keep their order."""
        return axes(self, "transpose")

    def fact(self, name: str) -> bool | str:
        """Returns the value of the clause with this name: a bool, or the word of an enum attribute."""
        attribute = getattr(self, name)
        if isinstance(attribute, EnumAttr):
            return attribute.data
        assert isinstance(attribute, IntegerAttr)
        return bool(attribute.value.data)


def _clause_value(clause: Clause, given: object) -> Attribute:
    if isinstance(given, Attribute):
        return given
    return boolean(bool(given)) if clause.kind == "bool" else _CLAUSE_ENUMS[clause.kind](str(given))


def _verify_cast(op: ElementwiseOp) -> None:
    source, target = element_type(op.src[0].type), element_type(op.dst[0].type)
    unsigned = op.fact("cast") == "cast_unsigned"
    name = cast_name(source, target, str(op.fact("round_mode")), unsigned=unsigned)
    if not is_supported_cast(name, register_based=hacc.features_of(op).vector_registers):
        fail(f"currently don't support cast {name}")


def _rules(entry: Elementwise) -> list[Rule]:
    """The rules of an entry's op, in the order in which the toolchain checks them."""
    allowed = (*entry.dtypes, *entry.dialect_dtypes)
    rules: list[Rule] = [no_broadcast_with_transpose, destination_style, same_rank, transposable,
                         nary(entry.inputs, inline_broadcast=entry.broadcast, temp_is_input=entry.result == "bool")]
    if entry.condition:
        rules += [element_types((0,), dtypes("i1", "i8")), element_types((1, 2), allowed)]
    elif entry.result == "same":
        rules.append(same_element_type)
        if not entry.any_dtype:
            rules.append(element_types(tuple(range(min(2, entry.inputs + 1))), allowed))
    elif entry.result == "bool":
        rules.append(element_types(tuple(range(entry.inputs)), allowed))
        if entry.inputs == 2:
            rules.append(element_types((2,), dtypes("i1", "i8")))
    if not entry.condition:
        rules += [vector_only(index) for index in range(entry.inputs) if index not in entry.scalar]
    if entry.broadcast:
        rules.append(broadcastable)
    return rules


def _format(entry: Elementwise) -> str:
    """The assembly format of an entry's op."""
    text = f"attr-dict {group('ins', 'src')} {group('outs', 'dst')}"
    if entry.temp_buffer:
        text += " " + group("temp_buffer?", "temp_buffer")
    for clause in entry.clauses:
        text += f" (`{clause.name}` `{clause.separator}` ${clause.name}^)?"
    if entry.axes_clauses:
        text += " (`broadcast` `=` $broadcast^)? (`transpose` `=` $transpose^)?"
    return text + " (`->` type($result)^)?"


def _class_name(mnemonic: str) -> str:
    special = {"vshl": "VShLOp", "vshr": "VShROp", "vmulext": "VMulExtOp", "vmulextui": "VMulExtUIOp",
               "vmodui": "VModUIOp", "vexpm1": "VExpM1Op", "visinf": "VIsInfOp", "visnan": "VIsNaNOp"}
    return special.get(mnemonic, f"V{mnemonic[1:].capitalize()}Op")


def _define_entry(entry: Elementwise) -> type[ElementwiseOp]:
    """Returns the class of an entry's op."""
    fields: dict[str, object] = {
        "name": f"hivm.hir.{entry.hivm}",
        "__doc__": f"{entry.doc} Computed for each element, by PIPE_V of the Vector core.",
        "__module__": __name__,
        "__annotations__": {},
        "src": var_operand_def(),
        "dst": var_operand_def(SHAPED),
    }
    if entry.temp_buffer:
        fields["temp_buffer"] = opt_operand_def(MEMREF)
    for clause in entry.clauses:
        default = _clause_value(clause, clause.default)
        constraint = BOOL if clause.kind == "bool" else _CLAUSE_ENUMS[clause.kind]
        fields[clause.name] = (opt_prop_def if clause.optional else prop_def)(constraint, default_value=default)
    fields["transpose"] = prop_def(I64_ARRAY, default_value=NO_AXES)
    fields["broadcast"] = prop_def(I64_ARRAY, default_value=NO_AXES)
    fields["result"] = var_result_def(TENSOR)
    fields["irdl_options"] = (AttrSizedOperandSegments(as_property=True),)
    fields["assembly_format"] = _format(entry)
    if entry.hivm == "vcast":
        fields["verify_"] = _verify_cast
    made: type[ElementwiseOp] = type(_class_name(entry.hivm), (ElementwiseOp,), fields)
    made = operation(pipes=(entry.pipe,), core=entry.core, rules=_rules(entry))(made)
    made.ENTRY = entry
    return made


CLASSES: dict[str, type[ElementwiseOp]] = {}
"""The classes of the elementwise ops by their mnemonics."""


def define_elementwise(entry: Elementwise) -> type[ElementwiseOp]:
    """Returns the op class of an entry; defines the class unless an earlier entry with the same mnemonic did."""
    return CLASSES.setdefault(entry.hivm, CLASSES.get(entry.hivm) or _define_entry(entry))


for _entry in elementwise():
    if not _entry.is_custom:
        define_elementwise(_entry)


def elementwise_op(mnemonic: str) -> type[ElementwiseOp]:
    """Returns the class of the elementwise op with a mnemonic: ``elementwise_op("vadd")``.

    Raises:
        KeyError: no elementwise op has that mnemonic.
    """
    return CLASSES[mnemonic]
