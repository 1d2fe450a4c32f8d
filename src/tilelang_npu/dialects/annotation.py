"""annotation: an op that attaches attributes or named values to a value, for later passes to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_attr_definition, operand_def, opt_prop_def, prop_def, var_operand_def

from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr, TextAttr
from tilelang_npu.dialects.ir.declaration import DialectOp, OfClass, fail, operation

WRITES = ArrayAttr([StringAttr("write")])
MAX_SLOTS = 1024
"""The largest accepted number of slots of a multi-buffer. UB has 1024 rows of 192 bytes."""
STRINGS = OfClass((ArrayAttr,), "an array of strings")


class EffectModeAttr(EnumAttr, attr_name="annotation.effect_mode", cases={"write": 0, "read": 1}):
    """The memory effect, read or write, that passes must assume of an ``annotation.mark`` on its operand."""


@irdl_attr_definition
class FilterPassesAttr(TextAttr):
    """The names of the passes that may run on an op, separated by commas: ``#annotation.filter_passes<"canonicalize,cse">``."""

    name = "annotation.filter_passes"


@operation(untouched=("src", "values"), side_effects=True)
class MarkOp(DialectOp):
    """Attaches attributes or named values to a value: ``annotation.mark %v {hivm.multi_buffer = 2 : i32} : type``."""

    name = "annotation.mark"
    src = operand_def()
    kept_as = prop_def(STRINGS, default_value=WRITES, prop_name="effects")
    values = var_operand_def()
    keys = opt_prop_def(STRINGS)
    assembly_format = (
        "$src attr-dict (`keys` `=` $keys^)? (`values` `=` `[` $values^ `:` type($values) `]`)? `:` type($src)"
    )

    def __init__(self, src: SSAValue | Operation, attributes: Mapping[str, Attribute] | None = None, *,
                 values: Mapping[str, SSAValue | Operation] | None = None, effects: Sequence[str] = ("write",)) -> None:
        """Builds the op.

        Args:
            src: the value to which attributes and values are attached.
            attributes: the attached attributes, by name.
            values: the attached SSA values, by name.
            effects: the memory effects that passes must assume, so that they do not move the op: ``write``, ``read`` or both.
        """
        named = dict(values or {})
        IRDLOperation.__init__(
            self, operands=[src, list(named.values())], attributes=dict(attributes or {}),
            properties={"effects": ArrayAttr([StringAttr(effect) for effect in effects]),
                        "keys": ArrayAttr([StringAttr(key) for key in named]) if named else None})

    def verify_(self) -> None:
        """Verifies that ``hivm.multi_buffer``, if present, is an integer from 1 to ``MAX_SLOTS``."""
        slots = self.attributes.get("hivm.multi_buffer")
        if slots is not None and not (isinstance(slots, IntegerAttr) and 1 <= slots.value.data <= MAX_SLOTS):
            fail(f"hivm.multi_buffer must be an integer from 1 to {MAX_SLOTS}")


Annotation = Dialect("annotation", [MarkOp], [EffectModeAttr, FilterPassesAttr])
