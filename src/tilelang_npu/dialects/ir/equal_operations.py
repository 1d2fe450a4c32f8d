"""What two operations have in common that compute the same from the same operands."""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.ir import Attribute, Operation

__all__ = ["attributes_of", "operation_key"]


def attributes_of(op: Operation) -> frozenset[tuple[str, Attribute]]:
    """Returns the properties and attributes of an operation, by name."""
    return frozenset((*op.properties.items(), *op.attributes.items()))


def operation_key(op: Operation) -> tuple[Hashable, ...]:
    """Returns a tuple that is equal for operations of one name with the same operands, result types and attributes."""
    return op.name, tuple(op.operands), op.result_types, attributes_of(op)
