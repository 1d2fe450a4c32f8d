"""Lookups in the op table: all entries, by name, by alias and by kind.

The modules that declare the entries import NumPy. So they are loaded at the first lookup, not when this package is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from tilelang_npu.ops.spec import BY_ALIAS, BY_NAME, BY_SYMBOL, Composite, Elementwise, Operation

if TYPE_CHECKING:
    from tilelang_npu.target import Chip, VectorRate


@cache
def _load() -> None:
    from tilelang_npu.ops import composite, peers, reductions, repeats, structured, vector  # noqa: F401  importing them declares the entries


def operations() -> Mapping[str, Operation]:
    """Returns all entries of the op table by canonical name, in the order of declaration."""
    _load()
    return MappingProxyType(BY_NAME)


def operation(name: str) -> Operation:
    """Returns the entry with this canonical name or alias.

    Raises:
        KeyError: no entry has the name.
    """
    _load()
    return BY_ALIAS[name]


def operation_of_symbol(symbol: str) -> Operation | None:
    """Returns the entry that a ``hivm.hir.custom`` with this symbol executes; None if no entry has the symbol."""
    _load()
    return BY_SYMBOL.get(symbol)


def rate_of(chip: Chip, cost: str) -> VectorRate:
    """Returns the cycles of an instruction of the Vector unit.

    Args:
        chip: the chip.
        cost: the ``cost`` of an entry: the name of a row of the chip's rate table, or the name of an entry with a ``rate``.

    Raises:
        KeyError: the rate table has no such row, and no entry of this name has a rate.
    """
    found = chip.vector.get(cost)
    if found is None:
        found = operations()[cost].rate
    if found is None:
        raise KeyError(cost)
    return found


def elementwise() -> Iterator[Elementwise]:
    """Yields the elementwise entries that are not composites, in the order of declaration."""
    return (op for op in operations().values() if isinstance(op, Elementwise) and not isinstance(op, Composite))


def composites() -> Iterator[Composite]:
    """Yields the composite entries, in the order of declaration."""
    return (op for op in operations().values() if isinstance(op, Composite))
