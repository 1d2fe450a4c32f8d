"""Whether the types of an op are those of its declaration, asked once of ops that are alike.

Types and attributes do not change, and what a declaration asks of an op without regions is about these alone: of two ops with
equal types and properties it says the same. What it found in order is remembered; traits, which may ask where an op stands, are
always asked.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from itertools import count

from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation
from xdsl.traits import OpTrait

__all__ = ["remember"]

_MOST = 100_000
"""Attributes that are remembered; then all are forgotten."""


class _Numbers:
    """Attributes by number: equal ones have one.

    Attributes:
        numbers: by the identity of an attribute, which is no other's as long as it is held.
        good: of each declaration, what the ops had that were in order.
    """

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.good: dict[int, set[Hashable]] = {}
        self._equal: dict[Attribute, int] = {}
        self._held: list[Attribute] = []
        self._free = count()

    def number(self, attribute: Attribute) -> int:
        """The number of an attribute that has none yet."""
        number = self._equal.setdefault(attribute, next(self._free))
        self._held.append(attribute)
        self.numbers[id(attribute)] = number
        return number

    def is_full(self) -> bool:
        """Whether it is to be forgotten."""
        return len(self._held) > _MOST


class _Now:
    """What is known now; whoever began with what was known before ends with it."""

    known = _Numbers()


def _signature(op: Operation, declared: tuple[str, ...], known: _Numbers) -> Hashable:
    """What a declaration without regions looks at."""
    numbers = known.numbers
    held = [value._type for value in op._operands]
    operands = len(held)
    held += [value._type for value in op.results]
    held += op.properties.values()
    held += [op.attributes[name] for name in declared if name in op.attributes]
    try:
        said = [numbers[id(each)] for each in held]
    except KeyError:
        said = [numbers.get(id(each), -1) for each in held]
        said = [known.number(each) if number < 0 else number for each, number in zip(held, said, strict=True)]
    return (operands, len(op.results), len(op._successors), tuple(op.properties),
            tuple([name in op.attributes for name in declared]), tuple(said))


@cache
def remember(kind: type[Operation]) -> None:
    """Let the declaration of a class of ops be asked once about ops that are alike, whoever asks."""
    if not issubclass(kind, IRDLOperation):
        return
    definition = kind.get_irdl_definition()
    declared = tuple(definition.attributes)
    around = tuple(trait for trait in definition.traits if type(trait).verify is not OpTrait.verify)
    of_all = type(definition).verify

    def verify(op: Operation) -> None:
        if _Now.known.is_full():
            _Now.known = _Numbers()
        known = _Now.known
        good = known.good.setdefault(id(definition), set())
        try:
            signature = None if op.regions else _signature(op, declared, known)
        except TypeError:  # an attribute that cannot be a key
            signature = None
        if signature is None or signature not in good:
            of_all(definition, op)
            if signature is not None:
                good.add(signature)
            return
        for trait in around:
            trait.verify(op)

    vars(definition)["verify"] = verify
