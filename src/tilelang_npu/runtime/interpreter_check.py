"""A call computed both ways, compiled and interpreted, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_npu.errors import TileError, doors
from tilelang_npu.interpreter import Write
from tilelang_npu.runtime import rounding_spread
from tilelang_npu.runtime.binding import BoundCall

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel import JITKernel

__all__ = ["Agreement", "TensorDifference", "against_interpreter", "check"]


@dataclass(frozen=True)
class TensorDifference:
    """Where a compiled result is not what the interpreter computes.

    Attributes:
        tensor: the parameter's name.
        index: the first element that differs.
        count, total: how many elements differ, and how many there are.
        compiled, interpreted: the two values of that element.
        explained: by how much rounding explains a difference there; 0 for integers.
        wrote: the statement that wrote the element last, its block and the tile that it wrote, as the interpreter executed it;
            None where nothing did.
    """

    tensor: str
    index: tuple[int, ...]
    count: int
    total: int
    compiled: Any
    interpreted: Any
    explained: float
    wrote: Write | None

    def __str__(self) -> str:
        place = f"{self.tensor}[{', '.join(map(str, self.index))}]"
        wrote = (", which no statement writes" if self.wrote is None else
                 f", written with {self.wrote.tile} at {self.wrote.line} by block {self.wrote.block}")
        rounding = f"; rounding explains {self.explained:.3g}" if self.explained else ""
        return (f"{place} is {self.compiled} compiled and {self.interpreted} interpreted{rounding}{wrote}; "
                f"{self.count} of {self.total} elements differ")


@dataclass(frozen=True)
class Agreement:
    """What a comparison found.

    Attributes:
        kernel: the kernel's name.
        differences: one for each tensor that differs.
        rounding: by tensor that is equal within rounding and not bit by bit: the largest difference.
        undefined: by tensor, how many of the elements that differ depend on memory that nothing has written.
    """

    kernel: str
    differences: tuple[TensorDifference, ...] = ()
    rounding: dict[str, float] = field(default_factory=dict)
    undefined: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        notes = [f"{count} elements of {name} differ, and depend on memory that nothing has written"
                 for name, count in self.undefined.items()]
        if self.differences:
            lines = [f"{self.kernel}: the compiled result is not the interpreter's", *map(str, self.differences), *notes]
        elif self.rounding:
            most = ", ".join(f"{name} by {value:.3g}" for name, value in self.rounding.items())
            lines = [f"{self.kernel}: compiled and interpreted are equal within rounding ({most}): sums are added in another "
                     "order, or a function is rounded otherwise", *notes]
        elif notes:
            lines = [f"{self.kernel}: compiled and interpreted are equal but for memory that nothing has written", *notes]
        else:
            lines = [f"{self.kernel}: compiled and interpreted are equal bit by bit"]
        return "\n  ".join(lines)


def check(kernel: JITKernel, args: Sequence[Any]) -> Agreement:
    """Run a kernel compiled and interpreted on copies of the arguments, and compare; the arguments stay as they are."""
    call = kernel.signature.bind([np.array(arg, copy=True) if isinstance(arg, np.ndarray) else arg for arg in args])
    before = [np.array(value, copy=True) if isinstance(value, np.ndarray) else value for value in call.values]
    kernel._run(call)
    return compare(kernel, before, call)


def against_interpreter(kernel: JITKernel, before: Sequence[Any], call: BoundCall) -> None:
    """Compare what a run has written with what the interpreter computes.

    Args:
        kernel: the kernel that has run.
        before: what its arguments held before.
        call: its arguments now.

    Raises:
        TileError: S501, they differ.
    """
    found = compare(kernel, before, call)
    if not found:
        first, *others = found.differences
        raise TileError(f"{kernel.name}: {first}", code="S501", location=None if first.wrote is None else first.wrote.line,
                        notes=list(map(str, others)),
                        help="kernel.interpret(...) under a debugger shows the interpreter's values; a kernel that has no race "
                        "and no T.Parallel whose points use each other's results should be reported")


def compare(kernel: JITKernel, before: Sequence[Any], call: BoundCall) -> Agreement:
    """Compare what a run made of its arguments with what the interpreter makes of them."""
    from tilelang_npu.runtime.interpreted import execute

    parameters = kernel.signature.parameters
    count = len(parameters) - len([name for name in parameters if name.name == "tensor" and name.location is None])

    def interpreted() -> list[Any]:
        values = rounding_spread.copied(before)
        execute(kernel.prim_func, kernel.signature, BoundCall(values, call.symbols, call.made), kernel.dialect)
        return values

    wanted = interpreted()
    judge = _Judge(interpreted, wanted)
    differences: list[TensorDifference] = []
    rounding: dict[str, float] = {}
    undefined: dict[str, int] = {}
    for position, parameter in enumerate(parameters[:count]):
        got, expected = call.values[position], wanted[position]
        if not isinstance(got, np.ndarray) or position in kernel.signature.workspaces:
            continue
        far = rounding_spread.differs(got, expected)
        if not far.any():
            continue
        explained: Any = 0.0
        if parameter.dtype.is_float:
            explained = rounding_spread.allowance(expected, judge.spreads[position])
            apart = rounding_spread.distance(got, expected)
            rounding[parameter.name] = float(np.nanmax(np.where(np.isfinite(apart), apart, 0)))
            far = far & ~(apart <= explained)
        else:
            far = rounding_spread.unexplained(interpreted, position, got, expected, far)
            rounding[parameter.name] = 1.0
        if not far.any():
            continue
        del rounding[parameter.name]
        if (idle := far & judge.undefined[position]).any():
            undefined[parameter.name] = int(idle.sum())
            far = far & ~idle
            if not far.any():
                continue
        index = tuple(int(part) for part in np.argwhere(far)[0])
        wrote = rounding_spread.writer(interpreted, parameter.name, index)
        differences.append(TensorDifference(
            parameter.name, index, int(far.sum()), got.size, got[index], expected[index],
            float(np.broadcast_to(explained, got.shape)[index]), wrote))
    return Agreement(kernel.name, tuple(differences), rounding, undefined)


class _Judge:
    """Further executions of a kernel by the interpreter, each of which is made where a difference asks for it."""

    def __init__(self, run: Callable[[], list[Any]], wanted: list[Any]) -> None:
        self._run, self._wanted = run, wanted

    @cached_property
    def spreads(self) -> list[Any]:
        """By parameter, how far rounding moves each element."""
        return rounding_spread.spread(self._run, self._wanted)

    @cached_property
    def undefined(self) -> list[Any]:
        """By parameter, which elements depend on memory that nothing has written."""
        return rounding_spread.undefined(self._run, self._wanted)


doors(globals())
