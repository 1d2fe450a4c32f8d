"""Tile ops for the entries of the op table that are not elementwise, and for debug output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, MemRefType, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
)

from tilelang_npu import ops
from tilelang_npu.dialects.ir.declaration import fail
from tilelang_npu.dialects.ir.effects import EffectsOp, op_with_effects
from tilelang_npu.dialects.tile.buffers import root_of

__all__ = [
    "DEBUG_OUTPUT_OPS", "CallOp", "DumpOp", "PrintOp", "PrintfOp", "ScratchOp", "SignalOp",
]

Fact = int | str | bool | list[int]


def _attribute(value: Fact) -> Attribute:
    if isinstance(value, bool):
        return BoolAttr.from_bool(value)
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    return StringAttr(value) if isinstance(value, str) else DenseArrayBase.from_list(i64, value)


def facts_of(attributes: Mapping[str, Attribute]) -> dict[str, Fact]:
    """Returns the attributes that are integers, bools, strings or lists of integers as Python values; omits all others."""
    found: dict[str, Fact] = {}
    for name, value in attributes.items():
        if isinstance(value, IntegerAttr):
            width = getattr(value.type, "width", None)
            found[name] = bool(value.value.data) if width is not None and width.data == 1 else int(value.value.data)
        elif isinstance(value, StringAttr):
            found[name] = value.data
        elif isinstance(value, DenseArrayBase):
            found[name] = [int(item) for item in value.get_values()]
    return found


@op_with_effects(reads={"inputs": "vector"}, writes={"outputs": "vector"})
class CallOp(EffectsOp):
    """Calls an operation that is a ``Structured`` entry of the op table: ``outputs = fn(inputs)``.

    The op's attributes are the attributes of the call, such as an axis or a mode.
    """

    name = "tile.call"
    fn = prop_def(StringAttr)
    inputs = var_operand_def(AnyAttr())
    outputs = var_operand_def(MemRefType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$fn (`ins` `(` $inputs^ `:` type($inputs) `)`)? `outs` `(` $outputs `:` type($outputs) `)` attr-dict"
    )

    def __init__(self, fn: str, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue],
                 facts: Mapping[str, Fact] | None = None):
        super().__init__(operands=[list(inputs), list(outputs)], properties={"fn": StringAttr(fn)},
                         attributes={name: _attribute(value) for name, value in (facts or {}).items()})

    def entry(self) -> ops.Structured:
        """Returns the entry of the op table that the op calls.

        Raises:
            VerifyException: the op table has no structured entry of this name.
        """
        found = ops.operations().get(self.fn.data)
        if not isinstance(found, ops.Structured):
            fail(f"{self.fn.data!r} is not a structured operation of the op table")
        return found

    def facts(self) -> dict[str, Fact]:
        """Returns the attributes of the call as Python values, by name."""
        return facts_of(self.attributes)

    def verify_(self) -> None:
        self.entry()

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the destination and an input are views of the same buffer."""
        return root_of(target) in {root_of(value) for value in self.inputs}

    def writes_partially(self) -> bool:
        """Whether the op table states that the operation may leave elements of its outputs unwritten."""
        return self.entry().partial

    def role(self, field: str, index: int) -> str:
        """Returns ``gm`` for an operand that is in GM by the operation's entry, and ``vector`` for any other operand."""
        return "gm" if self.entry().is_in_gm("inputs" if field == "inputs" else "outputs") else "vector"


@op_with_effects(scratch={"temp_buffer": "vector"})
class ScratchOp(EffectsOp):
    """States that the operation before used the author's buffer as scratch memory, so that its contents are undefined."""

    name = "tile.scratch"
    temp_buffer = operand_def(MemRefType)
    assembly_format = "$temp_buffer attr-dict `:` type($temp_buffer)"

    def __init__(self, temp_buffer: SSAValue):
        super().__init__(operands=[temp_buffer])


@op_with_effects(untouched=("values",), side_effects=True)
class PrintfOp(EffectsOp):
    """Prints values with a format string, which has a conversion such as ``%d`` for each value, as in C."""

    name = "tile.printf"
    format = prop_def(StringAttr)
    values = var_operand_def(AnyAttr())
    assembly_format = "$format (`(` $values^ `:` type($values) `)`)? attr-dict"

    def __init__(self, text: str, values: Sequence[SSAValue]):
        super().__init__(operands=[list(values)], properties={"format": StringAttr(text)})


@op_with_effects(reads={"value": "dump"}, side_effects=True)
class DumpOp(EffectsOp):
    """Prints the first ``count`` elements of a buffer in row-major order, after ``desc``, a number by which the kernel's author
    tells several dumps apart.

    The elements are arranged in ``shape`` if it is not empty.
    """

    name = "tile.dump"
    value = operand_def(MemRefType)
    desc = prop_def(IntegerAttr)
    count = prop_def(IntegerAttr)
    shape = prop_def(DenseArrayBase.constr(i64))
    assembly_format = "$value `desc` $desc `count` $count `as` $shape attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, desc: int, count: int, shape: Sequence[int]):
        super().__init__(operands=[value], properties={
            "desc": IntegerAttr(desc, i64), "count": IntegerAttr(count, i64), "shape": DenseArrayBase.from_list(i64, shape)})


@op_with_effects(reads={"value": "scalar"}, side_effects=True)
class PrintOp(EffectsOp):
    """Prints a text, followed by a scalar or by all elements of a buffer."""

    name = "tile.print"
    value = operand_def(AnyAttr())
    prefix = prop_def(StringAttr)
    hexadecimal = opt_prop_def(UnitAttr)
    assembly_format = "$prefix $value (`hex` $hexadecimal^)? attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, prefix: str, *, hexadecimal: bool = False):
        super().__init__(operands=[value], properties={
            "prefix": StringAttr(prefix), "hexadecimal": UnitAttr() if hexadecimal else None})


@op_with_effects(untouched=("values",), side_effects=True)
class SignalOp(EffectsOp):
    """Sends a signal to another card of a pod, or waits for one, or for the end of transfers to other cards.

    ============================== ====================================================== =================================
    ``fn``                         ``values``                                             ``how``
    ============================== ====================================================== =================================
    ``shmem_signal_op``            the word in GM, the number, the rank of the other card 0 to set the word, 1 to add to it
    ``shmem_signal_wait_until``    the word in GM, the number                             the position in ``COMPARISONS``
    ``shmem_quiet``                none                                                   0
    ``shmem_barrier``              the number of the team                                 0
    ============================== ====================================================== =================================

    The Vector core executes the op, and does not access the word through any of the pipes that move data.
    """

    name = "tile.signal"
    fn = prop_def(StringAttr)
    how = prop_def(IntegerAttr)
    values = var_operand_def(AnyAttr())
    assembly_format = "$fn $how (`(` $values^ `:` type($values) `)`)? attr-dict"

    def __init__(self, fn: str, values: Sequence[SSAValue], how: int = 0):
        super().__init__(operands=[list(values)], properties={"fn": StringAttr(fn), "how": IntegerAttr(how, i64)})


DEBUG_OUTPUT_OPS = (PrintfOp, PrintOp, DumpOp)
"""The ops that print. Passes must not change the core that executes them, or move them across accesses of their operands."""
