"""Lookups in the op table: all entries, by name, by alias and by kind.

The first lookup loads the entries, because they import NumPy, which importing the package does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType

from tilelang_npu.ops.spec import BY_ALIAS, BY_NAME, Composite, Elementwise, Operation


@cache
def _load() -> None:
    from tilelang_npu.ops import composite, reductions, repeats, structured, vector  # noqa: F401  importing them declares the entries


def operations() -> Mapping[str, Operation]:
    """Every declared operation by canonical name, in the order of declaration."""
    _load()
    return MappingProxyType(BY_NAME)


def operation(name: str) -> Operation:
    """The operation with a canonical name or an alias.

    Raises:
        KeyError: there is no such operation.
    """
    _load()
    return BY_ALIAS[name]


def elementwise() -> Iterator[Elementwise]:
    """The elementwise entries that are HIVM ops, in the order of declaration."""
    return (op for op in operations().values() if isinstance(op, Elementwise) and not isinstance(op, Composite))


def composites() -> Iterator[Composite]:
    """The composite entries, in the order of declaration."""
    return (op for op in operations().values() if isinstance(op, Composite))
