"""Executes kernels with the interpreter, and compares the results of compiled kernels with the interpreter's."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tilelang_npu.errors import TileError, doors
from tilelang_npu.interpreter import IndexInt, KernelSource, Write, interpret
from tilelang_npu.runtime.arguments.binding import BoundCall, Signature, size_of
from tilelang_npu.runtime.checks import rounding_spread
from tilelang_npu.runtime.settings.pass_config_keys import PassConfigKey
from tilelang_npu.symmetric_heap import is_shared, rehearsal
from tilelang_npu.traced import source as sources
from tilelang_npu.traced.symbols import Sym

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter
    from tilelang_npu.language.functions import PrimFunc
    from tilelang_npu.runtime.arguments.tensors import Argument, Array
    from tilelang_npu.source_dialects import TracedDialect
    from tilelang_npu.target import Chip


class InterpretableKernel(Protocol):
    """The interface of a compiled kernel that the interpreter needs: its function, parameters, dialect, chip and switches."""

    name: str
    dialect: TracedDialect
    prim_func: PrimFunc
    signature: Signature
    chip: Chip
    switches: Mapping[str, bool]


@dataclass(frozen=True)
class TensorDifference:
    """A result tensor of the compiled kernel that differs from the interpreter's result.

    Attributes:
        tensor: the name of the tensor's parameter.
        index: the index of the first element that differs.
        count: the number of elements that differ.
        total: the number of elements of the tensor.
        compiled: the value of the element at ``index`` in the compiled kernel's result.
        interpreted: the value of the element at ``index`` in the interpreter's result.
        explained: the largest difference of this element that rounding errors can explain; 0 for integers.
        wrote: the statement that wrote this element last in the interpreter, with its block and tile; None if no statement did.
    """

    tensor: str
    index: tuple[int, ...]
    count: int
    total: int
    compiled: object
    interpreted: object
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
    """The comparison of a compiled kernel's results with the interpreter's. Its truth value is whether the results agree.

    Attributes:
        kernel: the kernel's name.
        differences: one difference for each tensor that differs by more than rounding errors.
        rounding: for each tensor whose elements differ only by rounding errors, by its name, the largest difference.
        undefined: by the name of the tensor, the number of elements that differ and depend on uninitialised memory.
    """

    kernel: str
    differences: tuple[TensorDifference, ...] = ()
    rounding: dict[str, float] = field(default_factory=dict)
    undefined: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        notes = [f"{count} elements of {name} differ, and depend on uninitialised memory"
                 for name, count in self.undefined.items()]
        if self.differences:
            lines = [f"{self.kernel}: the compiled result is not the interpreter's", *map(str, self.differences), *notes]
        elif self.rounding:
            most = ", ".join(f"{name} by {value:.3g}" for name, value in self.rounding.items())
            lines = [f"{self.kernel}: compiled and interpreted are equal within rounding ({most}): sums are added in another "
                     "order, or a function is rounded otherwise", *notes]
        elif notes:
            lines = [f"{self.kernel}: compiled and interpreted are equal but for uninitialised memory", *notes]
        else:
            lines = [f"{self.kernel}: compiled and interpreted are equal bit by bit"]
        return "\n  ".join(lines)


def check_against_interpreter(kernel: InterpretableKernel, before: Sequence[Argument], call: BoundCall) -> None:
    """Executes the interpreter on the arguments of a run, and checks that its results agree with those of the run.

    Args:
        kernel: the compiled kernel that has run.
        before: copies of the run's arguments before the run.
        call: the run's arguments, which contain the results.

    Raises:
        TileError: S501, the results differ by more than rounding errors.
    """
    found = compare_with_interpreter(kernel, before, call)
    if not found:
        first, *others = found.differences
        raise TileError(f"{kernel.name}: {first}", code="S501", location=None if first.wrote is None else first.wrote.line,
                        notes=list(map(str, others)),
                        help="compare with the interpreter's values in a debugger: kernel.interpret(...); if the kernel has no "
                        "race, and no T.Parallel whose iterations depend on each other, please report it")


def compare_with_interpreter(kernel: InterpretableKernel, before: Sequence[Argument], call: BoundCall) -> Agreement:
    """Executes the interpreter on the arguments of a run, and returns the comparison of its results with those of the run.

    Tensors on the symmetric heap of a pod are not compared, because other cards may have written to them during the run.

    Args:
        kernel: the compiled kernel that has run.
        before: copies of the run's arguments before the run.
        call: the run's arguments, which contain the results.
    """
    parameters = kernel.signature.parameters
    # The last parameters may be tensors that the compiler added (T.alloc_global), which the interpreter does not have.
    count = len(parameters) - len([name for name in parameters if name.name == "tensor" and name.location is None])

    def interpreted() -> list[Argument]:
        values = rounding_spread.copied(before)
        with rehearsal(values, call.values):
            execute(kernel.prim_func, kernel.signature, BoundCall(values, call.symbols, call.made), kernel.dialect,
                    kernel.chip.aiv_per_aic, kernel.switches)
        return values

    wanted = interpreted()
    reruns = _Reruns(interpreted, wanted)
    differences: list[TensorDifference] = []
    rounding: dict[str, float] = {}
    undefined: dict[str, int] = {}
    for position, parameter in enumerate(parameters[:count]):
        got, expected = call.values[position], wanted[position]
        if not isinstance(got, np.ndarray) or position in kernel.signature.workspaces or is_shared(got):
            continue
        differing = rounding_spread.differs(got, expected)
        if not differing.any():
            continue
        explained: Array | float = 0.0
        if parameter.dtype.is_float:
            explained = rounding_spread.allowance(expected, reruns.spreads[position])
            distance = rounding_spread.distance(got, expected)
            rounding[parameter.name] = float(np.nanmax(np.where(np.isfinite(distance), distance, 0)))
            differing = differing & ~(distance <= explained)
        else:
            differing = rounding_spread.unexplained(interpreted, position, got, expected, differing)
            rounding[parameter.name] = 1.0
        if not differing.any():
            continue
        del rounding[parameter.name]
        if (uninitialised := differing & reruns.undefined[position]).any():
            undefined[parameter.name] = int(uninitialised.sum())
            differing = differing & ~uninitialised
            if not differing.any():
                continue
        index = tuple(int(part) for part in np.argwhere(differing)[0])
        wrote = rounding_spread.writer(interpreted, parameter.name, index)
        differences.append(TensorDifference(
            parameter.name, index, int(differing.sum()), got.size, got[index], np.asarray(expected)[index],
            float(np.broadcast_to(explained, got.shape)[index]), wrote))
    return Agreement(kernel.name, tuple(differences), rounding, undefined)


class _Reruns:
    """Further executions by the interpreter, which are made only if a difference needs them."""

    def __init__(self, run: Callable[[], list[Argument]], wanted: list[Argument]) -> None:
        self._run, self._wanted = run, wanted

    @cached_property
    def spreads(self) -> list[Array | float]:
        """For each parameter, by how much rounding at random changes each element."""
        return rounding_spread.spread(self._run, self._wanted)

    @cached_property
    def undefined(self) -> list[Array | bool]:
        """For each parameter, a mask of the elements that depend on uninitialised memory."""
        return rounding_spread.undefined(self._run, self._wanted)


def execute(func: PrimFunc, signature: Signature, call: BoundCall, dialect: TracedDialect, vector_cores: int,
            switches: Mapping[str, bool]) -> None:
    """Executes a kernel with the interpreter on the arguments of a call, and writes the results to the call's arrays.

    Args:
        func: the function under ``@T.prim_func``.
        signature: the kernel's parameters; tensors that the compiler has added are ignored.
        call: the bound arguments.
        dialect: the dialect of TileLang in which the kernel is written.
        vector_cores: the number of Vector cores per Cube core of the chip.
        switches: the values of the compiler switches, by their keys.

    Raises:
        TileError: T734, the kernel comes from a pickle, which does not contain its function; errors in the kernel.
    """
    function = func.function
    found, names = func.definition or (sources.find(function), {})
    given = {parameter.name: (None if place in call.absent else _in_shape(parameter, value, call.symbols), parameter.dtype)
             for place, (parameter, value) in enumerate(zip(signature.parameters, call.values, strict=True))
             if parameter.name in {argument.arg for argument in found.node.args.args + found.node.args.posonlyargs}}

    def source_of(function: FunctionType) -> tuple[ast.FunctionDef, str]:
        source = sources.find(function)
        return source.node, source.file

    source = KernelSource(function, found.node, found.file, source_of, dict(names),
                          lambda value: _with_sizes(value, call.symbols))
    interpret(source, given, dialect, vector_cores, mask_tails=switches.get(PassConfigKey.TL_ASCEND_TAIL_MASK.value, False))


def _in_shape(parameter: Parameter, value: Argument, symbols: Mapping[str, int]) -> Argument:
    """Returns the memory of a tensor with gaps in its shape, and that of one with too few elements in as many rows as it has.

    Any other argument is returned unchanged.
    """
    if parameter.shape is None or not isinstance(value, np.ndarray):
        return value
    if parameter.strides is None:
        declared = parameter.array_shape([size_of(size, symbols) for size in parameter.shape])
        return value if value.ndim == len(declared) else _first_rows(value, declared)
    shape, strides = ([size_of(size, symbols) for size in sizes] for sizes in (parameter.shape, parameter.strides))
    return np.lib.stride_tricks.as_strided(value, shape, [stride * value.itemsize for stride in strides])


def _first_rows(array: Array, declared: Sequence[int]) -> Array:
    """Returns an array with fewer elements than declared in the declared shape, with fewer rows; itself if a row is incomplete.

    The rows are along the first axis of more than one element.
    """
    axis = next((axis for axis, size in enumerate(declared) if size > 1), len(declared) - 1)
    row = math.prod(declared[axis + 1:])
    if not row or array.size % row:
        return array
    return array.reshape(*declared[:axis], array.size // row, *declared[axis + 1:])


def _with_sizes(value: object, symbols: Mapping[str, int]) -> object:
    """Returns a closure's value with numbers in place of symbolic dimensions; the value itself if it contains none."""
    if isinstance(value, Sym):
        return IndexInt(value.evaluate(symbols))
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        parts = [_with_sizes(part, symbols) for part in value]
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else type(value)(parts)
    if isinstance(value, dict) and type(value) is dict:
        replaced = {key: _with_sizes(part, symbols) for key, part in value.items()}
        return value if all(replaced[key] is part for key, part in value.items()) else replaced
    return value


doors(globals())
