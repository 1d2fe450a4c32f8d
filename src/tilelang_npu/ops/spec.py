"""The classes of the entries of the op table.

An incomplete entry is an error at import: an entry must have a meaning, a pipe, a HIVM op and a cost. Everything else about
the op (its ``T`` functions, its dialect class, its verifier, its documentation) is derived from the entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tilelang_npu.target.chip_data import OpCore
from tilelang_npu.target.dtypes import DType

if TYPE_CHECKING:
    import numpy as np

    from tilelang_npu.diagnostic_codes import Code
    from tilelang_npu.target.chip_data import Path, Pipe, VectorRate

CUSTOM = "custom"
"""The mnemonic of operations that HIVM has no op for."""


@dataclass(frozen=True, kw_only=True)
class Clause:
    """An attribute that the HIVM assembly prints after the operands, such as ``compare_mode = <eq>`` or ``round : true``.

    Attributes:
        name: the name of the attribute.
        kind: ``"bool"``, or the mnemonic of a HIVM enum attribute.
        default: the value of the attribute in an op that does not state it.
        separator: the punctuation between the name and the value.
        optional: whether an op may be without the attribute. The assembly then prints every attribute that the op has;
            otherwise it omits an attribute whose value is the default.
    """

    name: str
    kind: str
    default: object
    separator: Literal["=", ":"] = "="
    optional: bool = False


@dataclass(frozen=True, kw_only=True)
class Operation:
    """Base of the entries of the op table, with the fields that all entries have.

    Attributes:
        name: the canonical name, unique in the table.
        aliases: names of the operation under ``T``. The prefix determines the calling convention: ``tile.*`` has the
            destination first, ``v*`` and ``npuir_*`` have it last.
        pipe: the pipe that executes the operation.
        core: the kind of core that executes the operation.
        hivm: the mnemonic of the operation's HIVM op, without ``hivm.hir.``; ``custom`` for a ``hivm.hir.custom``.
        dtypes: the element types of the inputs.
        meaning: the NumPy function from input arrays to the output array, without the rounding of the hardware.
        cost: the row of the chip's rate table (``target``) that gives the cycles of the operation.
        doc: one sentence for the documentation.
        symbol: the name of the device function that implements a ``hivm.hir.custom``; empty if it equals ``name``.
        rate: the cycles of the operation on every chip, if no row of the rate tables gives them. ``cost`` is then ``name``.
    """

    name: str
    aliases: tuple[str, ...] = ()
    pipe: Pipe
    core: OpCore
    hivm: str
    dtypes: tuple[DType, ...]
    meaning: Callable[..., Any]
    cost: str = ""
    doc: str = ""
    symbol: str = ""
    rate: VectorRate | None = None

    def __post_init__(self) -> None:
        if self.rate is not None and not self.cost:
            object.__setattr__(self, "cost", self.name)
        given = {"name": self.name, "hivm": self.hivm, "cost": self.cost, "meaning": callable(self.meaning)}
        if missing := [field for field, value in given.items() if not value]:
            msg = f"op {self.name!r}: it has no {' and no '.join(missing)}"
            raise TypeError(msg)

    @property
    def is_custom(self) -> bool:
        """Whether HIVM has no op for the operation, so that it becomes a ``hivm.hir.custom``."""
        return self.hivm == CUSTOM


@dataclass(frozen=True, kw_only=True)
class Elementwise(Operation):
    """A vector op that computes each element of its destination from the same element of each input.

    Attributes:
        inputs: number of inputs.
        result: element type of the destination: ``same`` as the inputs, ``bool`` (i1 or i8), or ``any`` (a cast).
        scalar: positions of the inputs that may be a scalar.
        broadcast: whether an input may have size 1 where the destination has another size (the ``broadcast`` clause).
        temp_buffer: whether the HIVM op has a ``temp_buffer`` operand.
        clauses: further attributes of the HIVM op, in the order of the assembly.
        in_place: whether the destination may be one of the inputs.
        condition: whether the first input is a mask (i1 or i8), so that ``dtypes`` lists the types of the other inputs.
        floats: the NumPy function that equals ``meaning`` on f32, if ``meaning`` depends on the type.
        outputs: number of destinations; ``meaning`` returns a tuple if there are several.
        dialect_dtypes: element types that the HIVM verifier accepts in addition to ``dtypes``, for other chips.
        any_dtype: whether the HIVM verifier accepts every element type; ``dtypes`` are the types with a meaning.
        axes_clauses: whether the HIVM assembly has the clauses ``broadcast`` and ``transpose``.
        shifts: whether unsigned elements may be treated as the signed types of ``dtypes``, because the bits of the result are
            the same or a clause ``is_signed`` states the signedness.
        commutes: whether the two inputs may be swapped, so that a scalar first input becomes the second.
    """

    inputs: int
    pipe: Pipe = "V"
    core: OpCore = "AIV"
    result: Literal["same", "bool", "any"] = "same"
    scalar: frozenset[int] = frozenset()
    broadcast: bool = True
    temp_buffer: bool = True
    clauses: tuple[Clause, ...] = ()
    in_place: bool = True
    condition: bool = False
    floats: np.ufunc | None = None
    outputs: int = 1
    dialect_dtypes: tuple[DType, ...] = ()
    any_dtype: bool = False
    axes_clauses: bool = True
    shifts: bool = False
    commutes: bool = False


@dataclass(frozen=True)
class Step:
    """A step of the expansion of a composite: ``target = op(operands)``.

    Attributes:
        op: the name of an elementwise entry.
        operands: names of buffers (``dst``, ``src0``, ... or a temporary), and numbers.
        target: the name of the buffer that the step writes.
        clauses: pairs of the name and the value of a clause of ``op``.
    """

    op: str
    operands: tuple[str | float, ...]
    target: str
    clauses: tuple[tuple[str, str], ...] = ()


_STEP = re.compile(r"(\w+) = (\w+)\((.*)\)")


def parse_steps(text: str) -> tuple[Step, ...]:
    """Returns the steps that a text such as ``t = exp(src0); dst = add(t, 1)`` describes.

    Operands are numbers and names. ``dst`` is the destination, ``src0``, ``src1``, ... are the inputs, and any other name is a
    temporary buffer. Clauses such as ``round_mode=rint`` may follow the operands.

    Raises:
        ValueError: the text is not a list of steps.
    """
    found = []
    for line in text.split(";"):
        match = _STEP.fullmatch(line.strip())
        if match is None:
            msg = f"{line.strip()!r} is not a step: a step is `name = operation(operand, ...)`"
            raise ValueError(msg)
        target, op, inside = match.groups()
        parts = [part.strip() for part in inside.split(",")]
        clauses = tuple((name, value) for name, _, value in (part.partition("=") for part in parts) if value)
        operands = tuple(part if part[0].isalpha() else float(part) for part in parts if "=" not in part)
        found.append(Step(op, operands, target, clauses))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Composite(Elementwise):
    """An elementwise operation that HIVM has no op for, and that the compiler expands into other entries.

    Attributes:
        expansion: the steps. Only the first input may also be the destination.
        inputs_after: the number of inputs that follow the destination in the ``v*`` and ``npuir_*`` functions: 2 for
            ``T.vclamp(src, dst, low, high)``.
        accumulates: whether the operation reads the old values of the destination.
        counted: whether the ``tile.*`` function takes the number of elements as its last argument.
        instruction: whether the Vector unit has an instruction for the operation if all buffers have the same element type and
            shape, and each input at a position in ``scalar`` is a scalar. Such a call becomes a custom op whose symbol is the
            entry's name instead of the expansion, and ``cost`` is the cost of the instruction.
    """

    expansion: tuple[Step, ...]
    inputs_after: int = 0
    accumulates: bool = False
    counted: bool = False
    instruction: bool = False

    def __post_init__(self) -> None:
        known = {"dst"} if self.accumulates else set()
        known |= {f"src{number}" for number in range(self.inputs)}
        for step in self.expansion:
            missing = [name for name in step.operands if isinstance(name, str) and name not in known]
            if missing:
                msg = f"op {self.name!r}: the expansion reads {missing[0]} before a step has written it"
                raise TypeError(msg)
            known.add(step.target)
        if not self.expansion or self.expansion[-1].target != "dst":
            msg = f"op {self.name!r}: the last step of the expansion must write dst"
            raise TypeError(msg)


_WIDER = dict.fromkeys(("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"), "float32")


def computed_in(op: Operation, element: DType) -> DType | None:
    """Returns the element type in which an operation computes elements of type ``element``.

    That is ``element`` if the entry lists it, or f32 for an f16, bf16 or float8 that the entry does not list: the pass
    ``legalise-types`` then casts to f32 and back. Returns None if the operation does not support the type.
    """
    if element in op.dtypes:
        return element
    wider = _WIDER.get(str(element))
    return DType(wider) if wider is not None and wider in op.dtypes else None


def seen_as(op: Operation, element: DType) -> DType | None:
    """Returns the signed type of equal width as which an operation treats elements of the unsigned type ``element``.

    Returns None if the operation lists ``element`` itself, or cannot treat it as signed.
    """
    if not isinstance(op, Elementwise) or not op.shifts or element in op.dtypes or not str(element).startswith("uint"):
        return None
    signed = DType(str(element)[1:])
    return signed if signed in op.dtypes else None


@dataclass(frozen=True, kw_only=True)
class Reduce(Operation):
    """A vector op that reduces axes of its source.

    ``meaning(source, axis=axes)`` takes a tuple of axes and returns an array of the same rank, in which these axes have size 1.

    Attributes:
        mode: the ``reduce_op`` of ``hivm.hir.vreduce``.
        combine: the elementwise op that combines a result with the old values of the destination (``clear=False``).
        neutral: returns, for an element type, the value with which a source must be padded so that the result is unchanged.
    """

    mode: str
    combine: str
    neutral: Callable[[DType], float]
    pipe: Pipe = "V"
    core: OpCore = "AIV"
    hivm: str = "vreduce"


@dataclass(frozen=True)
class Shape:
    """The element type and the extents of an operand that a contract checks; a dynamic extent is None."""

    dtype: DType
    extents: tuple[int | None, ...]

    @property
    def count(self) -> int | None:
        """The number of elements of the operand; None if an extent is dynamic."""
        total = 1
        for size in self.extents:
            if size is None:
                return None
            total *= size
        return total


class Refused(Exception):
    """A call breaks the contract of its operation.

    Attributes:
        code: the code of the error that the language reports, such as ``T111``.
        problem: the message.
        advice: the help text, which says how to correct the call.
    """

    def __init__(self, code: Code, problem: str, advice: str) -> None:
        super().__init__(problem)
        self.code, self.problem, self.advice = code, problem, advice


Contract = Callable[[Sequence[Shape], Sequence[Shape], Mapping[str, object]], None]
"""A check of the outputs, the buffer inputs and the attributes of a call; it raises :class:`Refused`."""


@dataclass(frozen=True, kw_only=True)
class Structured(Operation):
    """A vector op that is not elementwise: it moves, scans, sorts, or generates data.

    ``meaning(outputs, inputs, facts)`` writes the output arrays; scalar inputs are numbers, and ``facts`` maps the names of the
    call's attributes to their values.

    Attributes:
        inputs: names of the inputs.
        outputs: names of the outputs.
        scalars: names of the inputs that are integers known only at run time; they must be the last inputs.
        attributes: the attributes of a call (integers, bools, strings, lists of integers) by name, with their defaults. A type
            in place of a default means that every call must state the attribute. The attributes become parameters of the ``T``
            function that is generated from the entry. An operation whose function is written by hand in ``language`` lists
            none.
        contract: checks a call from the shapes of the outputs, the shapes of the buffer inputs and the attributes; raises
            :class:`Refused`.
        build: returns the HIVM op from the inputs, the outputs and the attributes, for an op whose class is written by hand.
            If it is None, the class of the op is generated from the entry.
        in_place: whether an output may be an input.
        partial: whether the operation may leave elements of its outputs unwritten.
        by_rows: whether the result for a row along the last axis depends only on that row.
        source_alignment: the number of bytes of which the address of an input must be a multiple; 0 for the memory's blocks.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ("dst",)
    scalars: tuple[str, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict, hash=False)
    contract: Contract
    build: Callable[..., Any] | None = None
    in_place: bool = False
    partial: bool = False
    by_rows: bool = False
    source_alignment: int = 0
    pipe: Pipe = "V"
    core: OpCore = "AIV"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inputs[len(self.inputs) - len(self.scalars):] != self.scalars:
            msg = f"op {self.name!r}: the scalars {', '.join(self.scalars)} are not the last inputs"
            raise TypeError(msg)

    def is_in_gm(self, field: Literal["inputs", "outputs"]) -> bool:
        """Whether the buffers among the inputs, or among the outputs, are in GM; the others are in UB."""
        return False


@dataclass(frozen=True, kw_only=True)
class MemoryMove(Structured):
    """An operation that moves data between GM and UB, and may compute during the move, such as a strided load.

    The path gives the pipe, the core and the cost of the operation: ``cost`` is set to the path's name.

    Attributes:
        path: the name of a path of the chips: ``gm_ub`` or ``ub_gm``.
    """

    path: str

    def __post_init__(self) -> None:
        row = self.path_row
        for name, value in (("pipe", row.pipe), ("core", row.core), ("cost", self.path)):
            object.__setattr__(self, name, value)
        super().__post_init__()

    def is_in_gm(self, field: Literal["inputs", "outputs"]) -> bool:
        """Whether the path begins in GM, for the inputs, or ends there, for the outputs."""
        row = self.path_row
        return (row.source if field == "inputs" else row.target) == "gm"

    @property
    def path_row(self) -> Path:
        """The row of the operation's path in the table of the first chip that has the path.

        Raises:
            TypeError: no chip has the path, or the path does not connect GM and UB.
        """
        from tilelang_npu import target

        row = next((chip.paths[self.path] for chip in target.chips() if self.path in chip.paths), None)
        if row is None or {row.source, row.target} != {target.GM, "ub"}:
            known = sorted({name for chip in target.chips() for name, path in chip.paths.items()
                            if {path.source, path.target} == {target.GM, "ub"}})
            msg = f"op {self.name!r}: {self.path!r} is not a path between GM and UB; these paths are {', '.join(known)}"
            raise TypeError(msg)
        return row


@dataclass(frozen=True, kw_only=True)
class PeerMove(MemoryMove):
    """A one-sided transfer between this card and another card of its pod, along a path between GM and UB.

    The buffer at the end of the path in GM is in the memory of the card that the scalar input ``pe`` names: at the address that
    corresponds, on the symmetric heap, to the address of the operand (:mod:`tilelang_npu.symmetric_heap`). The operand itself
    is not accessed, unless ``pe`` is this card.

    Attributes:
        between_tensors: whether both buffers are in GM. The pass ``expand-composites`` then replaces the operation by copies
            and by the operation ``leg``.
        leg: for an operation between tensors, the name of the entry that moves data between UB and the other card.
    """

    between_tensors: bool = False
    leg: str = ""

    @property
    def peer(self) -> Literal["inputs", "outputs"]:
        """Which of the operands is in the memory of the other card: that at the end of the path in GM."""
        return "inputs" if super().is_in_gm("inputs") else "outputs"

    def is_in_gm(self, field: Literal["inputs", "outputs"]) -> bool:
        return self.between_tensors or super().is_in_gm(field)


BY_NAME: dict[str, Operation] = {}
BY_ALIAS: dict[str, Operation] = {}
"""``BY_NAME`` maps canonical names to entries, ``BY_ALIAS`` canonical names and aliases. Callers look entries up with
:mod:`tilelang_npu.ops.table`."""
BY_SYMBOL: dict[str, Operation] = {}
"""The declared entries by the symbol that a ``hivm.hir.custom`` of the entry has."""
FOLLOWERS: list[Callable[[Operation, bool], None]] = []
"""Functions ``follow(entry, added)`` that are called when an entry is added to the table (True) or removed from it (False).

A module that generates code for every entry registers one."""


OpT = TypeVar("OpT", bound=Operation)


def declare(op: OpT) -> OpT:
    """Adds an entry to the table, calls the functions in ``FOLLOWERS`` and returns the entry.

    Raises:
        ValueError: another entry has the entry's name, one of its aliases, or its symbol.
    """
    names = dict.fromkeys((op.name, *op.aliases))
    for name in names:
        other = BY_ALIAS.get(name)
        if other is not None:
            msg = f"op name {name!r} is declared twice, by {other.name!r} and {op.name!r}"
            raise ValueError(msg)
    symbol = op.symbol or op.name
    if symbol in BY_SYMBOL:
        msg = f"the symbol {symbol!r} is declared twice, by {BY_SYMBOL[symbol].name!r} and {op.name!r}"
        raise ValueError(msg)
    BY_ALIAS.update(dict.fromkeys(names, op))
    BY_NAME[op.name] = BY_SYMBOL[symbol] = op
    done: list[Callable[[Operation, bool], None]] = []
    try:
        for follow in FOLLOWERS:
            follow(op, True)
            done.append(follow)
    except Exception:
        _remove(op)
        for follow in done:
            follow(op, False)
        raise
    return op


def withdraw(op: Operation) -> None:
    """Removes an entry from the table and calls the functions in ``FOLLOWERS``."""
    _remove(op)
    for follow in FOLLOWERS:
        follow(op, False)


def _remove(op: Operation) -> None:
    for name in (op.name, *op.aliases):
        BY_ALIAS.pop(name, None)
    del BY_NAME[op.name]
    del BY_SYMBOL[op.symbol or op.name]
