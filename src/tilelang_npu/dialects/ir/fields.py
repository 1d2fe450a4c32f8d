"""Where the operands of each field of an op stand, worked out once for each way in which they come in groups.

xDSL decodes the attribute that states the sizes of the groups whenever a field is asked for, which passes, rules and effects do
all the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Operation
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, OpDef, OperandDef, OptionalDef, VariadicDef

__all__ = ["accessors", "integers_in", "places"]

_INTEGERS: dict[tuple[bytes, int, object], tuple[int, ...]] = {}
"""What the data of an array of integers of a width says, signed or not."""
_MOST = 100_000


class _Groups:
    """The fields of a class of ops."""

    def __init__(self, kind: type[IRDLOperation]) -> None:
        definition = kind.get_irdl_definition()
        self.fields = definition.operands
        self.option = next((option for option in definition.options if isinstance(option, AttrSizedOperandSegments)), None)
        self.several = sum(isinstance(field, VariadicDef) for _, field in self.fields)
        self.known: dict[tuple[int, ...] | int, Mapping[str, range]] = {}

    def places(self, op: Operation) -> Mapping[str, range]:
        count = len(op._operands)
        sizes = count if self.option is None else integers_in(self.option.container(op)[self.option.attribute_name])
        found = self.known.get(sizes)
        if found is None:
            found = self.known[sizes] = self._counted(count) if isinstance(sizes, int) else self._stated(sizes)
        return found

    def _counted(self, count: int) -> Mapping[str, range]:
        """Where no attribute states the sizes: fields of several have equally many."""
        each = max(0, count - len(self.fields) + self.several) // max(1, self.several)
        return self._stated(tuple(each if isinstance(field, VariadicDef) else 1 for _, field in self.fields))

    def _stated(self, sizes: Sequence[int]) -> Mapping[str, range]:
        found, at = {}, 0
        for (name, _), size in zip(self.fields, sizes, strict=True):
            found[name] = range(at, at + size)
            at += size
        return found


_groups = cache(_Groups)


def integers_in(array: Any) -> tuple[int, ...]:
    """What an array of integers holds."""
    kind = array.elt_type
    if not isinstance(kind, IntegerType):
        return tuple(array.get_values())
    key = array.data.data, kind.width.data, kind.signedness.data is Signedness.UNSIGNED  # an enumeration hashes slowly
    found = _INTEGERS.get(key)
    if found is None:
        if len(_INTEGERS) > _MOST:
            _INTEGERS.clear()
        found = _INTEGERS[key] = tuple(array.get_values())
    return found


def places(op: IRDLOperation) -> Mapping[str, range]:
    """The positions of an op's operands, by field."""
    return _groups(type(op)).places(op)


class _Field:
    """A field of operands whose groups an attribute states."""

    def __init__(self, name: str, definition: OperandDef) -> None:
        self.name = name
        self.one = not isinstance(definition, VariadicDef)
        self.optional = isinstance(definition, OptionalDef)

    def __get__(self, op: IRDLOperation, kind: type[IRDLOperation] | None = None) -> Any:
        where = _groups(type(op)).places(op)[self.name]
        operands = op._operands
        if self.one:
            return tuple.__getitem__(operands, where.start)  # that of xDSL's is Python
        if self.optional:
            return operands[where.start] if where else None
        return operands[where.start:where.stop]

    def __set__(self, op: IRDLOperation, value: object) -> None:
        msg = "operands are written by their positions"
        raise AttributeError(msg)


def accessors(definition: OpDef) -> dict[str, _Field]:
    """What reads the fields of operands on ops whose groups an attribute states; empty where none does."""
    if not any(isinstance(option, AttrSizedOperandSegments) for option in definition.options):
        return {}
    return {name: _Field(name, field) for name, field in definition.operands}
