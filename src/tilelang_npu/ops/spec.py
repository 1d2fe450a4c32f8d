"""What an entry of the op tables holds, and how it is declared.

An entry is complete or refused at import: a vector op without a meaning, a pipe, a HIVM op and a cost cannot be
declared. Everything else about the op (its ``T`` functions, its dialect class, its verifier, its place in the
documentation) is derived from the entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tilelang_npu.target.dtypes import DType

if TYPE_CHECKING:
    import numpy as np

Pipe = Literal["S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"]
Core = Literal["AIC", "AIV", "either"]


@dataclass(frozen=True, kw_only=True)
class Clause:
    """An attribute that the HIVM assembly writes behind the operands: ``compare_mode = <eq>``, ``round : true``.

    ``kind`` is ``"bool"`` or the mnemonic of a HIVM enum attribute. A clause equal to its default is not printed; one that is
    ``optional`` is, where the op states it.
    """

    name: str
    kind: str
    default: object
    separator: Literal["=", ":"] = "="
    optional: bool = False


@dataclass(frozen=True, kw_only=True)
class Operation:
    """What every operation declares.

    Attributes:
        name: the canonical name, unique in the registry.
        aliases: names under ``T`` that mean this operation. The prefix fixes the calling convention: ``tile.*`` takes
            the destination first, ``v*`` and ``npuir_*`` take it last.
        pipe: the in-order queue that executes it.
        core: the core it runs on.
        hivm: mnemonic of the HIVM op it lowers to, without ``hivm.hir.``.
        dtypes: element types its inputs may have.
        meaning: the NumPy function from input arrays to the output array, on exact values.
        cost: row of the chip's rate table (``target``) that its cycles are taken from.
        doc: one sentence for the documentation.
    """

    name: str
    aliases: tuple[str, ...] = ()
    pipe: Pipe
    core: Core
    hivm: str
    dtypes: tuple[DType, ...]
    meaning: Callable[..., Any]
    cost: str
    doc: str = ""

    def __post_init__(self) -> None:
        if not self.name or not self.hivm or not self.cost or not callable(self.meaning):
            msg = f"op {self.name!r}: name, hivm, cost and meaning are required"
            raise TypeError(msg)


@dataclass(frozen=True, kw_only=True)
class Elementwise(Operation):
    """A vector op that computes each element of its destination from the same element of its inputs.

    Attributes:
        inputs: number of inputs.
        result: element type of the destination: ``same`` as the inputs, ``bool`` (i1 or i8), or ``any`` (a cast).
        scalar: positions of the inputs that may be a scalar.
        broadcast: whether an input may have size 1 where the destination has not (the ``broadcast`` clause).
        temp_buffer: whether the HIVM op has a ``temp_buffer`` operand.
        clauses: its further attributes, in the order of the assembly.
        in_place: whether the destination may be one of the inputs.
        condition: whether the first input is a mask (i1 or i8) and the others have the op's types.
        floats: the NumPy function that ``meaning`` comes down to on f32, where it tells types apart.
        outputs: number of destinations; ``meaning`` returns a tuple where there are several.
        dialect_dtypes: element types that the HIVM verifier takes beyond ``dtypes``, for chips that compute on them.
        any_dtype: whether the HIVM verifier takes every element type; ``dtypes`` are those that have a meaning.
        axes_clauses: whether the HIVM assembly writes ``broadcast`` and ``transpose``.
        shifts: whether unsigned elements may be seen as the signed ones of ``dtypes``: the bits of the result are the same, or
            a clause ``is_signed`` says how they are read.
        commutes: whether its two inputs may change places: a scalar that stands first goes second.
    """

    inputs: int
    pipe: Pipe = "V"
    core: Core = "AIV"
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
    """One operation of a composite: ``target = op(operands)``, names and numbers; ``clauses`` as of the entry."""

    op: str
    operands: tuple[str | float, ...]
    target: str
    clauses: tuple[tuple[str, str], ...] = ()


_STEP = re.compile(r"(\w+) = (\w+)\((.*)\)")


def steps(text: str) -> tuple[Step, ...]:
    """Steps from ``t = exp(src0); dst = add(t, 1)``. Names are ``dst``, ``src0``, ``src1``, ... and those of temporaries; the
    last operands may be clauses, ``round_mode=rint``.

    Raises:
        ValueError: the text is no step.
    """
    found = []
    for line in text.split(";"):
        match = _STEP.fullmatch(line.strip())
        if match is None:
            msg = f"{line.strip()!r} is no step"
            raise ValueError(msg)
        target, op, inside = match.groups()
        parts = [part.strip() for part in inside.split(",")]
        clauses = tuple((name, value) for name, _, value in (part.partition("=") for part in parts) if value)
        operands = tuple(part if part[0].isalpha() else float(part) for part in parts if "=" not in part)
        found.append(Step(op, operands, target, clauses))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Composite(Elementwise):
    """An elementwise operation without a HIVM op of its own: ``expansion`` writes it in other entries.

    Only its first input may be the destination too. The last ``behind`` inputs stand behind the destination in the names
    that take it last (``T.vclamp(src, dst, low, high)``). ``accumulates`` says that the destination is read. ``instruction``:
    the Vector unit does all of it at once where the buffers are alike and the scalars are scalars; then it is a custom op
    whose symbol is the entry's name, and ``cost`` is that of the instruction.
    """

    expansion: tuple[Step, ...]
    behind: int = 0
    accumulates: bool = False
    counted: bool = False
    instruction: bool = False

    def __post_init__(self) -> None:
        known = {"dst"} if self.accumulates else set()
        known |= {f"src{number}" for number in range(self.inputs)}
        for step in self.expansion:
            missing = [name for name in step.operands if isinstance(name, str) and name not in known]
            if missing:
                msg = f"op {self.name!r}: {missing[0]} is read before a step has written it"
                raise TypeError(msg)
            known.add(step.target)
        if not self.expansion or self.expansion[-1].target != "dst":
            msg = f"op {self.name!r}: the last step writes dst"
            raise TypeError(msg)


_WIDER = {"bfloat16": "float32", "float16": "float32"}


def computed_in(op: Operation, element: DType) -> DType | None:
    """The element type that an operation is computed in: its own where the entry has it, a wider one that holds all its
    values where the entry has that one only (``legalise-types`` casts there and back), None where there is none."""
    if element in op.dtypes:
        return element
    wider = _WIDER.get(str(element))
    return DType(wider) if wider is not None and wider in op.dtypes else None


def seen_as(op: Operation, element: DType) -> DType | None:
    """The signed element type that an operation sees unsigned elements as, where it has none for those; None where the elements
    stay what they are."""
    if not isinstance(op, Elementwise) or not op.shifts or element in op.dtypes or not str(element).startswith("uint"):
        return None
    signed = DType(str(element)[1:])
    return signed if signed in op.dtypes else None


@dataclass(frozen=True, kw_only=True)
class Reduce(Operation):
    """A vector op that folds axes of its source; ``mode`` is the ``reduce_op`` of ``hivm.hir.vreduce``.

    ``meaning`` takes the source and ``axis=`` (a tuple) and keeps the rank; ``combine`` folds a result into an existing
    destination (``clear=False``) and names an elementwise op; ``neutral`` is the value that padding must have.
    """

    mode: str
    combine: str
    neutral: Callable[[DType], Any]
    pipe: Pipe = "V"
    core: Core = "AIV"
    hivm: str = "vreduce"


@dataclass(frozen=True)
class Shape:
    """An operand as a contract sees it: its element type, and its extents (None where only run time knows one)."""

    dtype: DType
    extents: tuple[int | None, ...]

    @property
    def count(self) -> int | None:
        """Number of elements, where it is constant."""
        total = 1
        for size in self.extents:
            if size is None:
                return None
            total *= size
        return total


class Refused(Exception):
    """A contract that a call breaks: the code of the error, what is wrong, and what to do."""

    def __init__(self, code: str, problem: str, advice: str) -> None:
        super().__init__(problem)
        self.code, self.problem, self.advice = code, problem, advice


Contract = Callable[[Sequence[Shape], Sequence[Shape], Mapping[str, object]], None]


@dataclass(frozen=True, kw_only=True)
class Structured(Operation):
    """A vector op that is not computed element by element: it moves, scans, sorts, or makes data.

    ``hivm`` is the mnemonic of its HIVM op, or ``custom``: then it is a ``hivm.hir.custom`` whose symbol is the entry's
    name. ``meaning(outputs, inputs, facts)`` writes the outputs; scalar inputs are numbers.

    Attributes:
        inputs: names of the inputs; the last one may be repeated where ``variadic`` says so.
        outputs: names of the outputs, likewise.
        contract: called with the outputs, the inputs that are buffers and the attributes; raises :class:`Refused`.
        in_place: whether an output may be an input.
        partial: whether it may leave elements of its outputs what they were.
        by_rows: whether what it does to a row along the last axis depends on that row alone.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ("dst",)
    contract: Contract
    in_place: bool = False
    partial: bool = False
    by_rows: bool = False
    pipe: Pipe = "V"
    core: Core = "AIV"


BY_NAME: dict[str, Operation] = {}
BY_ALIAS: dict[str, Operation] = {}
"""What has been declared, by canonical names alone, and by these and aliases; :mod:`tilelang_npu.ops.table` reads them."""


OpT = TypeVar("OpT", bound=Operation)


def declare(op: OpT) -> OpT:
    """Enter ``op`` into the table.

    Raises:
        ValueError: its name or one of its aliases is taken.
    """
    for name in (op.name, *op.aliases):
        other = BY_ALIAS.get(name)
        if other is not None:
            msg = f"op name {name!r} is declared twice, by {other.name!r} and {op.name!r}"
            raise ValueError(msg)
        BY_ALIAS[name] = op
    BY_NAME[op.name] = op
    return op
