"""The entries of the op table.

An incomplete entry is an error at import: a vector op must have a meaning, a pipe, a HIVM op and a cost. Everything else about
the op (its ``T`` functions, its dialect class, its verifier, its documentation) is derived from the entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tilelang_npu.target.dtypes import DType

if TYPE_CHECKING:
    import numpy as np

    from tilelang_npu.target.chip_data import Pipe

Core = Literal["AIC", "AIV", "either"]


@dataclass(frozen=True, kw_only=True)
class Clause:
    """An attribute that the HIVM assembly prints after the operands: ``compare_mode = <eq>``, ``round : true``.

    ``kind`` is ``"bool"`` or the mnemonic of a HIVM enum attribute. A clause equal to its default is not
    printed, unless it is ``optional`` and the op states it.
    """

    name: str
    kind: str
    default: object
    separator: Literal["=", ":"] = "="
    optional: bool = False


@dataclass(frozen=True, kw_only=True)
class Operation:
    """The fields of every entry.

    Attributes:
        name: the canonical name, unique in the table.
        aliases: names of the operation under ``T``. The prefix determines the calling convention: ``tile.*`` has the
            destination first, ``v*`` and ``npuir_*`` have it last.
        pipe: the pipe that executes it.
        core: the kind of core that executes it.
        hivm: the mnemonic of its HIVM op, without ``hivm.hir.``.
        dtypes: the element types of its inputs.
        meaning: the NumPy function from input arrays to the output array, on exact values.
        cost: the row of the chip's rate table (``target``) with its cycles.
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
    """A vector op that computes each element of its destination from the same element of each input.

    Attributes:
        inputs: number of inputs.
        result: element type of the destination: ``same`` as the inputs, ``bool`` (i1 or i8), or ``any`` (a cast).
        scalar: positions of the inputs that may be a scalar.
        broadcast: whether an input may have size 1 where the destination has another size (the ``broadcast`` clause).
        temp_buffer: whether the HIVM op has a ``temp_buffer`` operand.
        clauses: its further attributes, in the order of the assembly.
        in_place: whether the destination may be one of the inputs.
        condition: whether the first input is a mask (i1 or i8) and only the others have the op's types.
        floats: the NumPy function that equals ``meaning`` on f32, if ``meaning`` depends on the type.
        outputs: number of destinations; ``meaning`` returns a tuple if there are several.
        dialect_dtypes: element types that the HIVM verifier accepts in addition to ``dtypes``, for other chips.
        any_dtype: whether the HIVM verifier accepts every element type; ``dtypes`` are the types with a meaning.
        axes_clauses: whether the HIVM assembly has ``broadcast`` and ``transpose``.
        shifts: whether unsigned elements may be treated as the signed types of ``dtypes``, because the bits of the result are
            the same or a clause ``is_signed`` states the signedness.
        commutes: whether the two inputs may be swapped, so that a scalar first input becomes the second.
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
    """A step of a composite: ``target = op(operands)``, with names and numbers as operands and the clauses of ``op``."""

    op: str
    operands: tuple[str | float, ...]
    target: str
    clauses: tuple[tuple[str, str], ...] = ()


_STEP = re.compile(r"(\w+) = (\w+)\((.*)\)")


def parse_steps(text: str) -> tuple[Step, ...]:
    """Parses steps such as ``t = exp(src0); dst = add(t, 1)``.

    Names are ``dst``, ``src0``, ``src1``, ... and those of temporaries; the last operands may be clauses, ``round_mode=rint``.

    Raises:
        ValueError: the text is not a list of steps.
    """
    found = []
    for line in text.split(";"):
        match = _STEP.fullmatch(line.strip())
        if match is None:
            msg = f"{line.strip()!r} is not a step"
            raise ValueError(msg)
        target, op, inside = match.groups()
        parts = [part.strip() for part in inside.split(",")]
        clauses = tuple((name, value) for name, _, value in (part.partition("=") for part in parts) if value)
        operands = tuple(part if part[0].isalpha() else float(part) for part in parts if "=" not in part)
        found.append(Step(op, operands, target, clauses))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Composite(Elementwise):
    """An elementwise operation without a HIVM op of its own, which is expanded into other entries.

    Attributes:
        expansion: the steps. Only the first input may also be the destination.
        behind: number of inputs that follow the destination in the names that have it last (``T.vclamp(src, dst, low, high)``).
        accumulates: whether the destination is read.
        counted: whether ``tile.*`` takes the number of elements as its last argument.
        instruction: whether the Vector unit has an instruction for it, if all buffers have one type and shape and the scalars
            are scalars. It then becomes a custom op whose symbol is the entry's name, and ``cost`` is that of the instruction.
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
    """The element type in which an operation on elements of a type is computed.

    It is the type itself if the entry has it, else a wider type that holds all its values (``legalise-types`` casts to it and
    back), else None.
    """
    if element in op.dtypes:
        return element
    wider = _WIDER.get(str(element))
    return DType(wider) if wider is not None and wider in op.dtypes else None


def seen_as(op: Operation, element: DType) -> DType | None:
    """The signed element type as which an operation treats unsigned elements; None where it does not need to."""
    if not isinstance(op, Elementwise) or not op.shifts or element in op.dtypes or not str(element).startswith("uint"):
        return None
    signed = DType(str(element)[1:])
    return signed if signed in op.dtypes else None


@dataclass(frozen=True, kw_only=True)
class Reduce(Operation):
    """A vector op that reduces axes of its source.

    ``meaning`` takes the source and ``axis=`` (a tuple) and keeps the rank.

    Attributes:
        mode: the ``reduce_op`` of ``hivm.hir.vreduce``.
        combine: the elementwise op that combines a result with the old values of the destination (``clear=False``).
        neutral: gives the value with which the source must be padded.
    """

    mode: str
    combine: str
    neutral: Callable[[DType], Any]
    pipe: Pipe = "V"
    core: Core = "AIV"
    hivm: str = "vreduce"


@dataclass(frozen=True)
class Shape:
    """The element type and the extents of an operand, for contracts; an extent is None where it is dynamic."""

    dtype: DType
    extents: tuple[int | None, ...]

    @property
    def count(self) -> int | None:
        """The number of elements; None where an extent is dynamic."""
        total = 1
        for size in self.extents:
            if size is None:
                return None
            total *= size
        return total


class Refused(Exception):
    """A call breaks the contract of its operation; has the code of the error, the problem, and the advice."""

    def __init__(self, code: str, problem: str, advice: str) -> None:
        super().__init__(problem)
        self.code, self.problem, self.advice = code, problem, advice


Contract = Callable[[Sequence[Shape], Sequence[Shape], Mapping[str, object]], None]


@dataclass(frozen=True, kw_only=True)
class Structured(Operation):
    """A vector op that is not elementwise: it moves, scans, sorts, or generates data.

    ``hivm`` is the mnemonic of its HIVM op, or ``custom``: then it is a ``hivm.hir.custom`` whose symbol is the entry's
    name. ``meaning(outputs, inputs, facts)`` writes the outputs; scalar inputs are numbers.

    Attributes:
        inputs: names of the inputs.
        outputs: names of the outputs.
        contract: called with the outputs, the inputs that are buffers and the attributes; raises :class:`Refused`.
        in_place: whether an output may be an input.
        partial: whether it may leave elements of its outputs unwritten.
        by_rows: whether the result for a row along the last axis depends only on that row.
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
"""The declared entries by canonical name, and by canonical name or alias; read them by :mod:`tilelang_npu.ops.table`."""


OpT = TypeVar("OpT", bound=Operation)


def declare(op: OpT) -> OpT:
    """Adds an entry to the table and returns it.

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
