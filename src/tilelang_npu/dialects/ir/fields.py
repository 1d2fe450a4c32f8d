"""The positions of an op's operands by field, a declared name of one operand, of an optional one, or of several.

The positions are cached by the number of operands of each field. xDSL would decode the property with these numbers whenever a
field is read, which passes, rules and effects do very often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Operation
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, OpDef, OperandDef, OptionalDef, VariadicDef

__all__ = ["accessors", "integers_in", "operand_positions"]

_INTEGERS: dict[tuple[bytes, int, object], tuple[int, ...]] = {}
"""The integers of a dense array, by the array's bytes, the width of an element, and whether elements are unsigned."""
_CACHE_LIMIT = 100_000


class _FieldPositions:
    """The positions of the operands of a class of ops by field."""

    def __init__(self, kind: type[IRDLOperation]) -> None:
        definition = kind.get_irdl_definition()
        self.fields = definition.operands
        self.option = next((option for option in definition.options if isinstance(option, AttrSizedOperandSegments)), None)
        self.variadic_fields = sum(isinstance(field, VariadicDef) for _, field in self.fields)
        self.by_sizes: dict[tuple[int, ...] | int, Mapping[str, range]] = {}
        """Positions by the sizes of the groups; by the number of operands where no property states the sizes."""

    def positions(self, op: Operation) -> Mapping[str, range]:
        count = len(op._operands)
        sizes = count if self.option is None else integers_in(self.option.container(op)[self.option.attribute_name])
        found = self.by_sizes.get(sizes)
        if found is None:
            found = self.by_sizes[sizes] = self._of_sizes(self._equal_sizes(count) if isinstance(sizes, int) else sizes)
        return found

    def _equal_sizes(self, count: int) -> tuple[int, ...]:
        """The sizes of the groups where no property states them: all variadic fields have the same size."""
        each = max(0, count - len(self.fields) + self.variadic_fields) // max(1, self.variadic_fields)
        return tuple(each if isinstance(field, VariadicDef) else 1 for _, field in self.fields)

    def _of_sizes(self, sizes: Sequence[int]) -> Mapping[str, range]:
        found, start = {}, 0
        for (name, _), size in zip(self.fields, sizes, strict=True):
            found[name] = range(start, start + size)
            start += size
        return found


_field_positions = cache(_FieldPositions)


def integers_in(array: Any) -> tuple[int, ...]:
    """Returns the elements of a dense array attribute; the elements of an integer array are cached."""
    kind = array.elt_type
    if not isinstance(kind, IntegerType):
        return tuple(array.get_values())
    # The key has a bool in place of the signedness, because the hash of an enum member is slow.
    key = array.data.data, kind.width.data, kind.signedness.data is Signedness.UNSIGNED
    found = _INTEGERS.get(key)
    if found is None:
        if len(_INTEGERS) > _CACHE_LIMIT:
            _INTEGERS.clear()
        found = _INTEGERS[key] = tuple(array.get_values())
    return found


def operand_positions(op: IRDLOperation) -> Mapping[str, range]:
    """Returns, for each field of an op, the range of the positions of its operands in ``op.operands``."""
    return _field_positions(type(op)).positions(op)


class _Field:
    """Descriptor of a field of operands: a value, an optional value, or several."""

    def __init__(self, name: str, definition: OperandDef) -> None:
        self.name = name
        self.is_single = not isinstance(definition, VariadicDef)
        self.is_optional = isinstance(definition, OptionalDef)

    def __get__(self, op: IRDLOperation, kind: type[IRDLOperation] | None = None) -> Any:
        positions = _field_positions(type(op)).positions(op)[self.name]
        operands = op._operands
        if self.is_single:
            return tuple.__getitem__(operands, positions.start)  # xDSL's own __getitem__ is written in Python
        if self.is_optional:
            return operands[positions.start] if positions else None
        return operands[positions.start:positions.stop]

    def __set__(self, op: IRDLOperation, value: object) -> None:
        msg = "set operands by position, in op.operands"
        raise AttributeError(msg)


def accessors(definition: OpDef) -> dict[str, _Field]:
    """Returns a descriptor for each field of an op class, which reads the field's operands by the cached positions.

    Returns an empty dictionary if no property states how many operands each field has: xDSL's own accessors are fast then.
    """
    if not any(isinstance(option, AttrSizedOperandSegments) for option in definition.options):
        return {}
    return {name: _Field(name, field) for name, field in definition.operands}
