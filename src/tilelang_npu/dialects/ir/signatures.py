"""Caches which combinations of types and properties an op's declaration accepts, so that equal ops are verified once.

Types and attributes are immutable, and for an op without regions a declaration checks nothing else. So the verification of two
ops of a class with equal types and properties has the same result. Only successes are cached. Traits are always verified,
because they may depend on the position of an op.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from itertools import count

from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation
from xdsl.traits import OpTrait

__all__ = ["cache_verification"]

_CACHE_LIMIT = 100_000
"""Number of attributes at which the cache is replaced by an empty one."""


class _Verdicts:
    """Numbers for attributes, equal ones with one number, and the signatures that were verified.

    Attributes:
        numbers: the number of an attribute by its ``id``. The cache holds the attribute, so no other gets the same id.
        verified: by the id of a declaration, the signatures of the ops that it accepted.
    """

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.verified: dict[int, set[Hashable]] = {}
        self._by_value: dict[Attribute, int] = {}
        self._held: list[Attribute] = []
        self._next_number = count()

    def add(self, attribute: Attribute) -> int:
        """Returns the number of an attribute whose id is not known yet."""
        number = self._by_value.setdefault(attribute, next(self._next_number))
        self._held.append(attribute)
        self.numbers[id(attribute)] = number
        return number

    def is_full(self) -> bool:
        """Whether the cache is to be replaced."""
        return len(self._held) > _CACHE_LIMIT


class _Current:
    """Holds the current cache. A verification that began with an older cache ends with it."""

    verdicts = _Verdicts()


def _signature(op: Operation, declared: tuple[str, ...], verdicts: _Verdicts) -> Hashable:
    """All that a declaration without regions checks: numbers of operands, results and successors, types and properties."""
    numbers = verdicts.numbers
    held = [value._type for value in op._operands]
    operands = len(held)
    held += [value._type for value in op.results]
    held += op.properties.values()
    held += [op.attributes[name] for name in declared if name in op.attributes]
    try:
        found = [numbers[id(each)] for each in held]
    except KeyError:
        found = [numbers.get(id(each), -1) for each in held]
        found = [verdicts.add(each) if number < 0 else number for each, number in zip(held, found, strict=True)]
    return (operands, len(op.results), len(op._successors), tuple(op.properties),
            tuple([name in op.attributes for name in declared]), tuple(found))


@cache
def cache_verification(kind: type[Operation]) -> None:
    """Replaces the ``verify`` of an op class's declaration by one that skips ops equal to an op that it accepted before.

    Later verifications of ops of this class use the cache, whoever calls them. A class that is not an IRDLOperation is left
    unchanged.
    """
    if not issubclass(kind, IRDLOperation):
        return
    definition = kind.get_irdl_definition()
    declared = tuple(definition.attributes)
    checked_traits = tuple(trait for trait in definition.traits if type(trait).verify is not OpTrait.verify)
    verify_all = type(definition).verify

    def verify(op: Operation) -> None:
        if _Current.verdicts.is_full():
            _Current.verdicts = _Verdicts()
        verdicts = _Current.verdicts
        verified = verdicts.verified.setdefault(id(definition), set())
        try:
            signature = None if op.regions else _signature(op, declared, verdicts)
        except TypeError:  # an attribute is not hashable
            signature = None
        if signature is None or signature not in verified:
            verify_all(definition, op)
            if signature is not None:
                verified.add(signature)
            return
        for trait in checked_traits:
            trait.verify(op)

    vars(definition)["verify"] = verify
