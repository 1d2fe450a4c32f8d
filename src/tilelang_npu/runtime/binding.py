"""From the arguments of a call to what the machine gets: one array or number per parameter, and the symbolic dimensions.

Arrays are bound, not copied: a kernel reads and writes the caller's memory, and two parameters may be the same memory.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_npu.errors import Location, TileError
from tilelang_npu.linear import Linear
from tilelang_npu.runtime.log import warn_at
from tilelang_npu.runtime.tensors import Array, as_array, is_tensor
from tilelang_npu.traced import numbers
from tilelang_npu.traced.author import user_location
from tilelang_npu.traced.symbols import Sym

if TYPE_CHECKING:
    from tilelang_npu.frontend import Parameter
    from tilelang_npu.ops import DType

__all__ = ["BoundCall", "Signature", "indices", "size_of"]


def indices(given: int | Sequence[int] | None, count: int, name: str, at: Location | None) -> tuple[int, ...]:
    """Positions of parameters, counted from the front, in the order given.

    Raises:
        TileError: T709 a position that no parameter has, or one that is named twice.
    """
    if given is None:
        return ()
    listed = [given] if isinstance(given, int) else list(given)
    found: list[int] = []
    for index in listed:
        if not isinstance(index, int) or not -count <= index < count:
            msg = f"{name}={given!r}: the kernel has {count} parameters, so an index is within {-count}..{count - 1}"
            raise TileError(msg, code="T709", location=at, help="a negative index counts from the last parameter")
        found.append(index % count)
    if len(set(found)) < len(found):
        msg = f"{name}={given!r} names a parameter twice"
        raise TileError(msg, code="T709", location=at, help="name each parameter once")
    return tuple(found)


@dataclass
class BoundCall:
    """The arguments of one run.

    Attributes:
        values: one array or number per parameter, in order.
        symbols: value of each symbolic dimension.
        made: positions of the arrays that the call has allocated.
    """

    values: list[Any]
    symbols: dict[str, int] = field(default_factory=dict)
    made: tuple[int, ...] = ()

    @property
    def sizes(self) -> tuple[object, ...]:
        """The arrays' shapes and the numbers: what a call writes follows from these, as far as data decide nothing."""
        return tuple(value.shape if isinstance(value, np.ndarray) else value.item() for value in self.values)


@dataclass(frozen=True)
class Signature:
    """What a kernel is called with.

    Attributes:
        kernel: its name.
        parameters: all parameters, in order.
        symbols: its symbolic dimensions, in the order the kernel takes them.
        outputs: positions that a call allocates and returns, in the order of the results.
        workspaces: positions that a call allocates and does not return.
        written: positions that the kernel writes.
        flat: an array with another number of elements is taken with a warning, as on the ascendc branch: the parameter's shape
            says how the kernel sees the caller's memory, and an access beyond its end is found when it happens.
        untouched: positions that it neither reads nor writes: None may be passed there.
    """

    kernel: str
    parameters: tuple[Parameter, ...]
    symbols: tuple[str, ...]
    outputs: tuple[int, ...]
    workspaces: tuple[int, ...]
    written: frozenset[int]
    flat: bool = False
    untouched: frozenset[int] = frozenset()

    @property
    def inputs(self) -> tuple[int, ...]:
        """Positions that the caller passes, in order."""
        made = {*self.outputs, *self.workspaces}
        return tuple(position for position in range(len(self.parameters)) if position not in made)

    def passed(self, count: int) -> tuple[int, ...]:
        """Positions that a call with so many arguments passes: the caller may bring the memory for the results."""
        both = tuple(sorted({*self.inputs, *self.outputs}))
        return both if count == len(both) else self.inputs

    def bind(self, arguments: Sequence[Any], overwritten: Callable[[BoundCall], Container[int]] | None = None) -> BoundCall:
        """Check the arguments and allocate the rest. The caller may also pass the outputs, at their places.

        Args:
            arguments: what is passed.
            overwritten: tells the positions of which all that is allocated is known to be written before it is read: nothing
                is put there first.

        Raises:
            TileError: T401 their number, T402 an element type, T403 a shape, T404 gaps between elements or memory that
                cannot be written, T405 a number for an array or the reverse, T407 memory that cannot be reached.
        """
        passed = self.passed(len(arguments))
        if len(arguments) != len(passed):
            raise self._miscounted(arguments)
        values: list[Any] = [None] * len(self.parameters)
        left = [position for position in (*self.outputs, *self.workspaces) if position not in passed]
        for position, argument in zip(passed, arguments, strict=True):
            if argument is None and position in self.untouched and self.parameters[position].shape is not None:
                left.append(position)
            else:
                values[position] = _checked(self.parameters[position], argument, position in self.written)
        symbols = self._solve(values)
        for position in passed:
            parameter = self.parameters[position]
            if parameter.shape is not None and position not in left:
                values[position] = _shaped(parameter, values[position], symbols, flat=self.flat)
        for position in left:
            values[position] = _allocated(self.parameters[position], symbols)
        call = BoundCall(values, symbols, tuple(left))
        kept: Container[int] = () if overwritten is None else overwritten(call)
        for position in left:
            if position not in kept:
                _mark_unwritten(values[position], self.parameters[position])
        return call

    def positional(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call in order; some may be named by their parameters.

        Raises:
            TileError: T401, no parameter has a name, the call makes its array, or it is given twice, or one is missing.
        """
        if not named:
            return tuple(arguments)
        called = user_location()
        names = [parameter.name for parameter in self.parameters]
        passed = self.inputs
        if {self.parameters[position].name for position in self.outputs} <= {*named} and self.outputs:
            passed = tuple(sorted({*self.inputs, *self.outputs}))  # the caller's own memory for the results
        taken = [names[position] for position in passed]
        for name in named:
            if name not in names:
                from difflib import get_close_matches

                near = get_close_matches(name, taken, n=1)
                raise TileError(f"{self.kernel} has no parameter {name}", code="T401", location=called,
                                help=f"did you mean {near[0]}?" if near else f"its parameters are {', '.join(taken) or 'none'}")
            if name not in taken:
                raise TileError(f"{self.kernel} got {name}, whose array the call allocates", code="T401", location=called,
                                help=f"leave it out; call it with {', '.join(taken) or 'nothing'}")
            if name in taken[:len(arguments)]:
                raise TileError(f"{self.kernel} got {name} twice, at its place and by its name", code="T401", location=called,
                                help="leave one of the two out")
        missing = [name for name in taken[len(arguments):] if name not in named]
        if missing:
            raise TileError(f"{self.kernel} is called without {', '.join(missing)}", code="T401", location=called,
                            help=f"call it with {', '.join(taken)}")
        return (*arguments, *(named[name] for name in taken[len(arguments):]))

    def longer(self, arguments: Sequence[Any]) -> dict[str, int]:
        """Lengths along the first axis of the arrays that are longer there than declared and fit otherwise, by parameter."""
        found = {}
        if len(arguments) == len(self.inputs):
            for position, argument in zip(self.inputs, arguments, strict=True):
                parameter = self.parameters[position]
                shape = tuple(argument.shape) if is_tensor(argument) else ()
                declared = [size for size in parameter.shape or () if isinstance(size, int)]
                constant = len(shape) == len(declared) == len(parameter.shape or ()) > 0
                if constant and list(shape[1:]) == declared[1:] and shape[0] > declared[0]:
                    found[parameter.name] = int(shape[0])
        return found

    def _miscounted(self, arguments: Sequence[Any]) -> TileError:
        taken = ", ".join(self.parameters[position].name for position in self.inputs) or "nothing"
        msg = f"{self.kernel} takes {_count(len(self.inputs))} ({taken}) and got {len(arguments)}"
        notes = []
        if self.outputs:
            names = ", ".join(self.parameters[position].name for position in self.outputs)
            notes.append(f"{names}: allocated and returned by the call (out_idx), not passed")
        if self.workspaces:
            names = ", ".join(self.parameters[position].name for position in self.workspaces)
            notes.append(f"{names}: allocated by the call (workspace_idx, T.alloc_global), not passed")
        last = len(self.parameters) - 1
        fewer = not self.outputs and self.inputs and len(arguments) == len(self.inputs) - 1 and self.inputs[-1] == last
        also = f", or let jit(out_idx=[-1]) make and return {self.parameters[last].name}" if fewer else ""
        return TileError(msg, code="T401", location=user_location(), notes=notes, help=f"call it with {taken}{also}")

    def _solve(self, values: Sequence[Any]) -> dict[str, int]:
        """The symbolic dimensions, from the shapes of the arrays: first those that stand alone, then those of which a size is a
        multiple or a sum and all else in it is known. What the other sizes say of them is compared in :func:`_shaped`. An array
        that contradicts an earlier one is accepted where it has as many elements as the earlier ones give it."""
        symbols: dict[str, int] = {}
        origin: dict[str, str] = {}
        sums: list[_Size] = []
        conflicts: list[tuple[Parameter, Array, TileError]] = []
        for parameter, array in zip(self.parameters, values, strict=True):
            if array is None or parameter.shape is None or array.ndim != len(parameter.shape):
                continue
            for axis, (dimension, size) in enumerate(zip(parameter.shape, array.shape, strict=True)):
                if not isinstance(dimension, Sym):
                    continue
                here = f"dimension {axis} of {parameter.name}"
                if dimension.operator != "symbol":
                    sums.append(_Size(here, parameter.location, dimension, size))
                    continue
                if symbols.setdefault(dimension.name, size) != size:
                    msg = f"{dimension.name} is {symbols[dimension.name]} by {origin[dimension.name]} and {size} by {here}"
                    conflicts.append((parameter, array, TileError(
                        msg, code="T403", location=parameter.location, notes=_called(),
                        help=f"pass arrays whose {dimension.name} is the same")))
                origin.setdefault(dimension.name, here)
        misfit = _solve_sums(symbols, sums)
        for parameter, array, conflict in conflicts:
            if array.size != _elements(parameter, symbols):
                raise conflict
        if misfit is not None:
            raise misfit.error(symbols)
        missing = [name for name in self.symbols if name not in symbols]
        if missing:
            where = next((p.location for p in self.parameters if missing[0] in _symbols(p)), None) or user_location()
            msg = f"no array of the call tells what {missing[0]} is"
            raise TileError(msg, code="T403", location=where, notes=_called(),
                            help=f"pass an array in whose shape {missing[0]} stands alone, or added to and multiplied with what"
                                 " is known")
        return symbols


@dataclass(frozen=True)
class _Size:
    """A size that is declared as an expression.

    Attributes:
        where: the dimension in words.
        location: the parameter's.
        dimension: the expression.
        size: what the array has there.
    """

    where: str
    location: Location | None
    dimension: Sym
    size: int

    def line(self, symbols: Mapping[str, int]) -> tuple[str, int, int] | None:
        """The only symbol that is not known, and the size as ``a`` of it and ``b``; None where it is not so."""
        form = _sum(self.dimension, symbols)
        return None if form is None or form.single is None else (*form.single, form.constant)

    def error(self, symbols: Mapping[str, int]) -> TileError:
        """No value of the symbol gives that size."""
        line = self.line(symbols)
        assert line is not None
        name, a, b = line
        fitting = [a * value + b for value in range(4) if a * value + b > 0][:3]
        known = ", ".join(f"{one} = {symbols[one]}" for one in self.dimension.symbols() if one in symbols)
        msg = f"{self.where} is {self.dimension}" + (f" with {known}" if known else "")
        return TileError(f"{msg}; the array has {self.size} there, which no {name} gives", code="T403", location=self.location,
                         notes=_called(),
                         help=f"pass an array of {', '.join(map(str, fitting))}{', ...' if a > 0 else ''} there"
                         if fitting else "make the kernel for that size")


def _solve_sums(symbols: dict[str, int], sums: Sequence[_Size]) -> _Size | None:
    """Add the dimensions that the sizes tell; one of the sizes that no whole number from 0 on gives, and nothing else told."""
    while True:
        before, misfit = len(symbols), None
        for one in sums:
            line = one.line(symbols)
            if line is not None:
                name, a, b = line
                value, rest = divmod(one.size - b, a)
                if rest == 0 and value >= 0:
                    symbols[name] = value
                else:
                    misfit = misfit or one
        if len(symbols) == before:
            return misfit


def _sum(size: int | Sym, known: Mapping[str, int]) -> Linear[str] | None:
    """A size as a sum of multiples of the dimensions that are not known; None where it is nothing of the kind."""
    if not isinstance(size, Sym):
        return Linear(size)
    if size.operator == "symbol":
        return Linear(known[size.name]) if size.name in known else Linear.of(size.name)
    left, right = (_sum(part, known) for part in size.operands)
    if left is None or right is None:
        return None
    if size.operator == "+":
        return left + right
    if size.operator == "-":
        return left - right
    if size.operator == "*" and (left.known or right.known):
        return left * right.constant if right.known else right * left.constant
    if size.operator == "//" and right.known and right.constant and (quotient := left.quotient(right.constant)) is not None:
        return quotient
    return Linear(size.evaluate(known)) if set(size.symbols()) <= known.keys() else None


def _elements(parameter: Parameter, symbols: Mapping[str, int]) -> int | None:
    """The number of elements that a tensor is declared with; None where it depends on a dimension that is not known."""
    if not _symbols(parameter) <= symbols.keys():
        return None
    return math.prod(size_of(size, symbols) for size in parameter.shape or ())


def _symbols(parameter: Parameter) -> set[str]:
    return {name for size in parameter.shape or () if isinstance(size, Sym) for name in size.symbols()}


def _count(number: int) -> str:
    return "1 argument" if number == 1 else f"{number} arguments"


def _called() -> list[str]:
    """The place of the call, for a message; where nothing is wrong it is not looked for."""
    called = user_location()
    return [f"in the call at {called.shown_line}"] if called is not None else []


def _checked(parameter: Parameter, argument: Any, written: bool) -> Any:
    if parameter.shape is None:
        return _number(parameter, argument)
    name, where = parameter.name, parameter.location
    if not is_tensor(argument):
        msg = f"{name} is an array of {parameter.dtype}; got {_kind(argument)}"
        raise TileError(msg, code="T405", location=where, notes=_called(), help="pass a NumPy array or a torch tensor")
    masked = sys.modules.get("numpy.ma")  # where nobody has loaded it there are none, and it takes a while to load
    if masked is not None and isinstance(argument, masked.MaskedArray):
        raise TileError(f"{name} is a masked array, and a kernel knows no mask", code="T405", location=where, notes=_called(),
                        help=f"pass {name}.filled() with a number for what is masked, or {name}.data")
    try:
        array = as_array(argument)
    except TileError as error:
        error.message = f"{name}: {error.message}"
        error.notes = tuple(_called())
        raise error.at(where) from None
    if array.dtype != parameter.dtype.numpy:
        msg = f"{name} has elements of {parameter.dtype}; the array has {array.dtype}"
        raise TileError(msg, code="T402", location=where, notes=_called(), help=_conversion(argument, name, parameter.dtype))
    if not array.flags.c_contiguous:
        strides = [stride // array.itemsize for stride in array.strides]
        msg = f"{name} has gaps between its elements: shape {list(array.shape)}, strides {strides} elements"
        copy = f"{name}.contiguous()" if _has_contiguous(argument) else f"numpy.ascontiguousarray({name})"
        advice = f"pass {copy}" + ("; it is a copy, so read the result from it" if written else "")
        raise TileError(msg, code="T404", location=where, notes=_called(), help=advice)
    if written and not array.flags.writeable:
        msg = f"the kernel writes {name}, and the array is read-only"
        raise TileError(msg, code="T404", location=where, notes=_called(), help=f"pass a copy: {name}.copy()")
    return array


def _has_contiguous(argument: Any) -> bool:
    return hasattr(argument, "contiguous")


def _conversion(argument: Any, name: str, dtype: DType) -> str:
    if _has_contiguous(argument):
        return f"pass {name}.to(torch.{dtype})"
    return f"pass {name}.astype({dtype.numpy.type.__module__}.{dtype.numpy})"


def _kind(argument: Any) -> str:
    if argument is None or isinstance(argument, (bool, int, float, str)):
        return repr(argument)
    return f"an array of shape {list(argument.shape)}" if is_tensor(argument) else f"a {type(argument).__name__}"


def _number(parameter: Parameter, argument: Any) -> Any:
    dtype = parameter.dtype
    wanted: tuple[type, ...] = (bool, np.bool_) if dtype.is_bool else (int, np.integer)
    if dtype.is_float:
        wanted = (int, float, np.integer, np.floating)
    fits = isinstance(argument, wanted) and (dtype.is_bool or not isinstance(argument, (bool, np.bool_)))
    wrong = numbers.refusal(argument.item() if isinstance(argument, np.generic) else argument, dtype, "it") if fits else None
    if not fits or wrong is not None:
        msg = f"{parameter.name} is a number of type {dtype}; got {_kind(argument)}"
        kind = "a float" if dtype.is_float else "a bool" if dtype.is_bool else "an int in its range"
        raise TileError(msg, code="T405", location=parameter.location, notes=_called(),
                        help=wrong.help if wrong is not None and dtype.is_float else f"pass {kind}")
    return dtype.numpy.type(argument)


def _shaped(parameter: Parameter, array: Array, symbols: Mapping[str, int], *, flat: bool) -> Array:
    """The array in the shape that the kernel declares.

    A kernel gets the address of an array, so an array with the declared number of elements is the same memory in any shape.
    With ``flat`` an array with more elements is accepted, of which the kernel sees the first, and one with fewer, which it gets
    as it is. Other sizes of as many axes are told with a warning: rows and columns may have been exchanged by mistake.
    """
    assert parameter.shape is not None
    declared = tuple(size_of(size, symbols) for size in parameter.shape)
    if 0 in array.shape or 0 in declared:
        msg = f"{parameter.name} has no elements: its shape is {list(array.shape)}"
        raise TileError(msg, code="T403", location=parameter.location, notes=_called(),
                        help="skip the call where there is nothing to compute")
    if array.shape == declared:
        return array
    count = math.prod(declared)
    if array.ndim != len(declared) and array.size == count:
        return array.reshape(declared)
    spelled = ", ".join(
        f"{size} = {value}" if isinstance(size, Sym) else str(value)
        for size, value in zip(parameter.shape, declared, strict=True)
    )
    msg = f"{parameter.name} has shape [{spelled}]; the array has {list(array.shape)}"
    if array.size != count and not flat:
        raise TileError(msg, code="T403", location=parameter.location, notes=_called(),
                        help="pass an array of this shape, or make the kernel for that one")
    seen = "the kernel sees the array's memory in its own shape"
    exchanged = array.ndim == 2 and array.shape == declared[::-1]
    also = ": it does not exchange rows and columns" if exchanged else ""
    warn_at(TileError(msg, code="T403", location=user_location(), help=seen + also))
    return array.reshape(-1)[:count].reshape(declared if array.size >= count else -1)


def size_of(size: int | Sym, symbols: Mapping[str, int]) -> int:
    """A dimension as a number; KeyError where it depends on a symbol that has no value."""
    return size.evaluate(symbols) if isinstance(size, Sym) else size


def _allocated(parameter: Parameter, symbols: Mapping[str, int]) -> Array:
    """Memory that holds anything."""
    assert parameter.shape is not None
    return np.empty(tuple(size_of(size, symbols) for size in parameter.shape), parameter.dtype.numpy)


def _mark_unwritten(array: Array, parameter: Parameter) -> None:
    """Make memory that nothing was written to yet: NaN for floats, and bytes that no result is likely to have for integers."""
    if parameter.dtype.is_float:
        array.fill(np.nan)
    elif parameter.dtype.is_bool:
        array.fill(0)
    else:
        array.view(np.uint8)[...] = 0xA5
