"""Binds the arguments of a call to a kernel's parameters, and computes the values of the symbolic dimensions.

Arrays are not copied: a kernel reads and writes the caller's memory, and two parameters can refer to the same memory.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu.errors import Location, TileError
from tilelang_npu.linear import Linear
from tilelang_npu.runtime.arguments.tensors import INT4_OF_TORCH, Argument, Array, as_array, is_tensor, like_caller
from tilelang_npu.runtime.settings.argument_location import location_of_word
from tilelang_npu.runtime.settings.log import warn_at
from tilelang_npu.traced import numbers
from tilelang_npu.traced.author import user_location
from tilelang_npu.traced.symbols import Sym

if TYPE_CHECKING:
    import torch

    from tilelang_npu.frontend import Parameter
    from tilelang_npu.ops import DType


def positions_of(given: int | Sequence[int] | None, count: int, name: str, call: Location | None) -> tuple[int, ...]:
    """Returns the values of ``out_idx`` or ``workspace_idx`` as non-negative positions of parameters, in the given order.

    Args:
        given: one position or several; a negative position counts from the last parameter.
        count: the number of parameters.
        name: ``out_idx`` or ``workspace_idx``, for messages.
        call: the source location of the ``jit`` or ``compile``.

    Raises:
        TileError: T709 there is no parameter at a position, or a position is given twice.
    """
    if given is None:
        return ()
    found: list[int] = []
    for position in [given] if isinstance(given, int) else given:
        if not isinstance(position, int) or not -count <= position < count:
            msg = f"{name}={given!r}: the kernel has {count} parameters, so an index must be within {-count}..{count - 1}"
            raise TileError(msg, code="T709", location=location_of_word(name, call),
                            help="a negative index counts from the last parameter")
        found.append(position % count)
    if len(set(found)) < len(found):
        msg = f"{name}={given!r} names a parameter twice"
        raise TileError(msg, code="T709", location=location_of_word(name, call), help="name each parameter once")
    return tuple(found)


@dataclass
class BoundCall:
    """The bound arguments of one call.

    Attributes:
        values: one array or number for each parameter, in the order of the parameters.
        symbols: the values of the symbolic dimensions, by name.
        made: the positions of the parameters whose arrays the call allocated.
        absent: those of them for which the caller passed None.
    """

    values: list[Argument]
    symbols: dict[str, int] = field(default_factory=dict)
    made: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()

    @property
    def sizes(self) -> tuple[object, ...]:
        """The shape of each array and the value of each number, in the order of the parameters.

        The set of elements that a call writes depends only on these, unless it also depends on the elements of arrays.
        """
        return tuple(value.shape if isinstance(value, np.ndarray) else value.item() for value in self.values)


@dataclass(frozen=True)
class Signature:
    """The parameters of a kernel, and the rules by which calls bind arguments to them. Positions are indices of parameters.

    Attributes:
        kernel: the kernel's name.
        parameters: all parameters, in order.
        symbols: the names of the symbolic dimensions, in the order in which the compiled function takes them.
        outputs: the positions of the parameters that a call allocates and returns, in the order of the results.
        workspaces: the positions of the parameters that a call allocates and does not return.
        written: the positions of the parameters that the kernel writes.
        flat: whether the rules of the ascendc dialect hold: an array with another number of elements than declared is accepted
            with a warning. The kernel then views the caller's memory in the declared shape, and an access beyond the array's
            end is an error when the kernel runs.
        unused: the positions of the parameters that the kernel neither reads nor writes, for which None can be passed. For a
            kernel that is only interpreted, those of all tensors: only its execution shows which it uses.
    """

    kernel: str
    parameters: tuple[Parameter, ...]
    symbols: tuple[str, ...]
    outputs: tuple[int, ...]
    workspaces: tuple[int, ...]
    written: frozenset[int]
    flat: bool = False
    unused: frozenset[int] = frozenset()

    @property
    def inputs(self) -> tuple[int, ...]:
        """The positions of the parameters for which the caller passes arguments, in ascending order: neither outputs nor
        workspaces.
        """
        allocated = {*self.outputs, *self.workspaces}
        return tuple(position for position in range(len(self.parameters)) if position not in allocated)

    def positions_passed(self, count: int) -> tuple[int, ...]:
        """Returns the positions of the parameters that get the arguments of a call, in ascending order.

        A caller passes the inputs alone, or the inputs and an array for each output.

        Args:
            count: the number of arguments of the call.

        Returns:
            The positions of inputs and outputs if their number is ``count``; else those of the inputs.
        """
        with_outputs = tuple(sorted({*self.inputs, *self.outputs}))
        return with_outputs if count == len(with_outputs) else self.inputs

    def bind(self, arguments: Sequence[object], overwritten: Callable[[BoundCall], Container[int]] | None = None) -> BoundCall:
        """Checks the arguments of a call against the parameters, and allocates the arrays that the caller does not pass.

        Args:
            arguments: the arguments for the inputs, or for inputs and outputs, in the order of the parameters.
            overwritten: a function of the bound call that returns the positions of the allocated arrays that the kernel wholly
                writes and never reads; these arrays are not initialised. Others are filled with NaN or a byte pattern.

        Raises:
            TileError: T401 the number of arguments is wrong, T402 an element type is wrong, T403 a shape is wrong, T404 an
                array is not contiguous, or is read-only and the kernel writes it, T405 a number is passed for an array or an
                array for a number, T407 an array's memory cannot be accessed.
        """
        passed = self.positions_passed(len(arguments))
        if len(arguments) != len(passed):
            raise self._wrong_count(arguments)
        values: list[Argument | None] = [None] * len(self.parameters)
        allocated = [position for position in (*self.outputs, *self.workspaces) if position not in passed]
        absent = []
        for position, argument in zip(passed, arguments, strict=True):
            if argument is None and position in self.unused and self.parameters[position].shape is not None:
                absent.append(position)
            else:
                values[position] = _checked(self.parameters[position], argument, position in self.written)
        symbols = self._solve(values, absent)
        for position in passed:
            parameter, array = self.parameters[position], values[position]
            if not isinstance(array, np.ndarray):
                continue  # a number, or an array that is allocated below
            if parameter.strides is not None:
                values[position] = _with_gaps(parameter, array, symbols, position in self.written)
            else:
                values[position] = _in_declared_shape(parameter, array, symbols, flat=self.flat)
        allocated += absent
        for position in allocated:
            parameter = self.parameters[position]
            if parameter.strides is not None:
                if position not in absent:
                    raise TileError(f"{parameter.name} is a tensor with gaps, which a call cannot allocate", code="T190",
                                    location=parameter.location,
                                    help=f"declare it as T.Tensor, or pass an array for {parameter.name}: leave it out of"
                                         " out_idx")
                values[position] = np.empty(_extent(parameter, symbols), parameter.array_dtype)
                continue
            assert parameter.shape is not None
            values[position] = np.empty(parameter.array_shape([size_of(size, symbols) for size in parameter.shape]),
                                        parameter.array_dtype)
        bound = [value for value in values if value is not None]
        assert len(bound) == len(values)
        call = BoundCall(bound, symbols, tuple(allocated), tuple(absent))
        without_initial_values: Container[int] = () if overwritten is None else overwritten(call)
        for position in allocated:
            array = bound[position]
            if position not in without_initial_values and isinstance(array, np.ndarray):
                _fill_uninitialised(array, self.parameters[position].dtype)
        return call

    def positional(self, arguments: Sequence[object], named: Mapping[str, object]) -> tuple[object, ...]:
        """Returns the arguments of a call in the order of the parameters.

        A named argument ``stream`` is ignored, unless a parameter has this name.

        Args:
            arguments: the positional arguments.
            named: the named arguments.

        Raises:
            TileError: T401, there is no parameter with a name, the call allocates the parameter's array, an argument is passed
                twice, or an argument is missing.
        """
        names = [parameter.name for parameter in self.parameters]
        named = {name: value for name, value in named.items() if name != "stream" or "stream" in names}
        if not named:
            return tuple(arguments)
        call = user_location()
        passed = self.inputs
        if {names[position] for position in self.outputs} <= {*named} and self.outputs:
            passed = tuple(sorted({*self.inputs, *self.outputs}))  # the caller's own arrays for the results
        expected = [names[position] for position in passed]
        for name in named:
            if name not in names:
                from difflib import get_close_matches

                near = get_close_matches(name, expected, n=1)
                raise TileError(
                    f"{self.kernel} has no parameter {name}", code="T401", location=call,
                    help=f"did you mean {near[0]}?" if near else f"its parameters are {', '.join(expected) or 'none'}")
            if name not in expected:
                raise TileError(f"{self.kernel} got {name}, whose array the call allocates", code="T401", location=call,
                                help=f"do not pass {name}; pass only {', '.join(expected) or 'no arguments'}")
            if name in expected[:len(arguments)]:
                raise TileError(f"{self.kernel} got {name} twice, by position and by name", code="T401", location=call,
                                help=f"pass {name} only once")
        missing = [name for name in expected[len(arguments):] if name not in named]
        if missing:
            raise TileError(f"{self.kernel} is called without {', '.join(missing)}", code="T401", location=call,
                            help=f"call it with {', '.join(expected)}")
        return (*arguments, *(named[name] for name in expected[len(arguments):]))

    def longer_lengths(self, arguments: Sequence[object]) -> dict[str, int]:
        """Returns the first sizes of the arrays whose first axis is longer than declared and whose other sizes are as declared.

        Args:
            arguments: the arguments for the inputs, in order.

        Returns:
            The length of the array's first axis, by the name of the parameter. Only parameters with constant shapes count.
        """
        found = {}
        if len(arguments) == len(self.inputs):
            for position, argument in zip(self.inputs, arguments, strict=True):
                parameter = self.parameters[position]
                shape = tuple(argument.shape) if is_tensor(argument) else ()
                declared = [size for size in parameter.shape or () if isinstance(size, int)]
                is_constant = len(shape) == len(declared) == len(parameter.shape or ()) > 0
                if is_constant and list(shape[1:]) == declared[1:] and shape[0] > declared[0]:
                    found[parameter.name] = int(shape[0])
        return found

    def results(self, call: BoundCall, arguments: tuple[object, ...]
                ) -> Array | torch.Tensor | list[Array | torch.Tensor] | None:
        """Returns what a call returns to the caller: one output by itself, several outputs as a list.

        Outputs are torch tensors if an argument is one, else NumPy arrays. Without outputs, the result is None, or an empty
        list in the ascendc dialect.

        Args:
            call: the bound arguments after the run.
            arguments: the arguments that the caller passed.
        """
        values = (call.values[position] for position in self.outputs)
        results = [like_caller(value, arguments) for value in values if isinstance(value, np.ndarray)]
        if not results:
            return [] if self.flat else None
        return results[0] if len(results) == 1 else results

    def _wrong_count(self, arguments: Sequence[object]) -> TileError:
        expected = ", ".join(self.parameters[position].name for position in self.inputs) or "nothing"
        count = "1 argument" if len(self.inputs) == 1 else f"{len(self.inputs)} arguments"
        msg = f"{self.kernel} takes {count} ({expected}) and got {len(arguments)}"
        notes = []
        if self.outputs:
            names = ", ".join(self.parameters[position].name for position in self.outputs)
            notes.append(f"{names}: allocated and returned by the call (out_idx), not passed")
        if self.workspaces:
            names = ", ".join(self.parameters[position].name for position in self.workspaces)
            notes.append(f"{names}: allocated by the call (workspace_idx, T.alloc_global), not passed")
        last = len(self.parameters) - 1
        lacks_last = not self.outputs and self.inputs and len(arguments) == len(self.inputs) - 1 and self.inputs[-1] == last
        also = f", or let jit(out_idx=[-1]) make and return {self.parameters[last].name}" if lacks_last else ""
        return TileError(msg, code="T401", location=user_location(), notes=notes, help=f"call it with {expected}{also}")

    def _solve(self, values: Sequence[Argument | None], absent: Sequence[int]) -> dict[str, int]:
        """Returns the symbolic dimensions, solved from the shapes of the arrays: first the dimensions that are a single symbol,
        then linear expressions with one unknown. :func:`_in_declared_shape` checks the other dimensions. An array that
        contradicts an earlier one is accepted if it has as many elements as the shape from the earlier arrays. A dimension
        that only absent arrays have is 1: no element of them is accessed.

        Args:
            values: an array, a number or None for each parameter.
            absent: the positions of the parameters that the kernel does not use and for which the caller passes None.

        Raises:
            TileError: T403 two arrays contradict each other, a size fits no value of a symbol, or a symbol has no value.
        """
        symbols: dict[str, int] = {}
        origin: dict[str, str] = {}
        equations: list[_SizeEquation] = []
        conflicts: list[tuple[Parameter, Array, TileError]] = []
        for parameter, array in zip(self.parameters, values, strict=True):
            if not isinstance(array, np.ndarray) or parameter.shape is None or array.ndim != len(parameter.shape):
                continue
            found = [(f"dimension {axis} of {parameter.name}", dimension, size)
                     for axis, (dimension, size) in enumerate(zip(parameter.shape, _declared_sizes(parameter, array.shape),
                                                                  strict=True))]
            # The stride of an axis with one element has no meaning, so any value would do; 1 is one that no rule refuses.
            found += [(f"stride {axis} of {parameter.name}", stride, max(1, step // array.itemsize) if size == 1
                       else step // array.itemsize) for axis, (stride, step, size) in enumerate(
                           zip(parameter.strides or (), array.strides, array.shape, strict=False))]
            for name, dimension, size in found:
                if not isinstance(dimension, Sym):
                    continue
                if dimension.operator != "symbol":
                    equations.append(_SizeEquation(name, parameter.location, dimension, size))
                    continue
                if symbols.setdefault(dimension.name, size) != size:
                    msg = (f"{dimension.name} is {symbols[dimension.name]} according to {origin[dimension.name]}, and {size} "
                           f"according to {name}")
                    conflicts.append((parameter, array, TileError(
                        msg, code="T403", location=parameter.location, notes=_call_note(),
                        help=f"pass arrays whose {dimension.name} is the same")))
                origin.setdefault(dimension.name, name)
        unsolvable = _solve_equations(symbols, equations)
        for parameter, array, conflict in conflicts:
            is_known = _symbols(parameter) <= symbols.keys()
            if not is_known or array.size != math.prod(size_of(size, symbols) for size in parameter.shape or ()):
                raise conflict
        if unsolvable is not None:
            raise unsolvable.error(symbols)
        present = {name for position, parameter in enumerate(self.parameters) if position not in absent
                   for name in _symbols(parameter)}
        missing = []
        for name in self.symbols:
            if name not in symbols and absent and name not in present:
                symbols[name] = 1
            elif name not in symbols:
                missing.append(name)
        if missing:
            where = next((p.location for p in self.parameters if missing[0] in _symbols(p)), None) or user_location()
            msg = f"no array of the call determines {missing[0]}"
            raise TileError(msg, code="T403", location=where, notes=_call_note(),
                            help=f"pass an array whose shape contains {missing[0]} alone, or added to and multiplied with known"
                                 " sizes")
        return symbols


@dataclass(frozen=True)
class _SizeEquation:
    """An axis whose size is declared as an expression of symbolic dimensions, with the size that the caller's array has there.

    Attributes:
        name: the description of the axis for messages.
        location: the source location of the parameter.
        dimension: the declared size, an expression.
        size: the size of the array along the axis.
    """

    name: str
    location: Location | None
    dimension: Sym
    size: int

    def linear_form(self, symbols: Mapping[str, int]) -> tuple[str, int, int] | None:
        """Returns ``(symbol, a, b)`` if the declared size is ``a * symbol + b`` with one unknown symbol; else None."""
        form = _linear_form(self.dimension, symbols)
        return None if form is None or form.single is None else (*form.single, form.constant)

    def error(self, symbols: Mapping[str, int]) -> TileError:
        """Returns the error T403, which says that no value of the unknown symbol gives the size of the array."""
        form = self.linear_form(symbols)
        assert form is not None
        name, a, b = form
        fitting = [a * value + b for value in range(4) if a * value + b > 0][:3]
        known = ", ".join(f"{symbol} = {symbols[symbol]}" for symbol in self.dimension.symbols() if symbol in symbols)
        msg = f"{self.name} is {self.dimension}" + (f" with {known}" if known else "")
        return TileError(f"{msg}; the array's size there is {self.size}, which no value of {name} gives", code="T403",
                         location=self.location,
                         notes=_call_note(),
                         help=f"pass an array with size {', '.join(map(str, fitting))}{', ...' if a > 0 else ''} there"
                         if fitting else "make the kernel for the size of the array")


def _solve_equations(symbols: dict[str, int], equations: Sequence[_SizeEquation]) -> _SizeEquation | None:
    """Solves equations with one unknown symbol, and adds the values of these symbols to ``symbols``.

    Returns an equation that no nonnegative value of its symbol solves, if no other equation determines this symbol; else None.
    """
    while True:
        before, unsolvable = len(symbols), None
        for equation in equations:
            form = equation.linear_form(symbols)
            if form is not None:
                name, a, b = form
                value, rest = divmod(equation.size - b, a)
                if rest == 0 and value >= 0:
                    symbols[name] = value
                else:
                    unsolvable = unsolvable or equation
        if len(symbols) == before:
            return unsolvable


def _linear_form(size: int | Sym, known: Mapping[str, int]) -> Linear[str] | None:
    """Returns a size as a linear form of the unknown symbols; None if it is not linear."""
    if not isinstance(size, Sym):
        return Linear(size)
    if size.operator == "symbol":
        return Linear(known[size.name]) if size.name in known else Linear.of(size.name)
    left, right = (_linear_form(part, known) for part in size.operands)
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


def _symbols(parameter: Parameter) -> set[str]:
    sizes = (*(parameter.shape or ()), *(parameter.strides or ()))
    return {name for size in sizes if isinstance(size, Sym) for name in size.symbols()}


def _call_note() -> list[str]:
    """Returns a note with the location of the call. Called only for errors, because the search for the location is slow."""
    call = user_location()
    return [f"in the call at {call.shown_line}"] if call is not None else []


def _checked(parameter: Parameter, argument: object, written: bool) -> Argument:
    """Returns the array or number that the kernel gets for an argument.

    Raises:
        TileError: T402, T404, T405, T407: the argument does not fit the parameter.
    """
    if parameter.shape is None:
        return _number(parameter, argument)
    name, where = parameter.name, parameter.location
    if not is_tensor(argument):
        msg = f"{name} must be an array of {parameter.dtype}; got {_described(argument)}"
        raise TileError(msg, code="T405", location=where, notes=_call_note(), help="pass a NumPy array or a torch tensor")
    # Loading numpy.ma takes long; if it is not loaded, or another thread loads it now, there are no masked arrays.
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    if masked is not None and isinstance(argument, masked):
        raise TileError(f"{name} is a masked array, and kernels ignore masks", code="T405", location=where, notes=_call_note(),
                        help=f"pass {name}.filled() with a number for the masked elements, or {name}.data")
    try:
        array = as_array(argument)
    except TileError as error:
        error.message = f"{name}: {error.message}"
        error.notes = tuple(_call_note())
        raise error.at(where) from None
    is_torch = hasattr(argument, "contiguous")
    if parameter.dtype.packed:
        array = _in_bytes(array)
        if array.dtype != np.int8:
            own = "torch.int4" if parameter.dtype == "int4" else "torch.float4_e2m1fn_x2"
            raise TileError(f"{name} has elements of {parameter.dtype}, two in each byte; the array has {array.dtype}",
                            code="T402", location=where, notes=_call_note(),
                            help=f"pass an array of int8 with half as many columns, or a tensor of {own}: the lower four"
                                 " bits of a byte are the element with the even index")
    elif parameter.dtype.stored != parameter.dtype and array.dtype == parameter.dtype.numpy:
        array = array.view(parameter.array_dtype)
    if array.dtype != parameter.array_dtype:
        dtype = parameter.dtype
        conversion = f"to(torch.{dtype})" if is_torch else f"astype({dtype.numpy.type.__module__}.{dtype.numpy})"
        raise TileError(f"{name} has elements of {dtype}; the array has {array.dtype}", code="T402", location=where,
                        notes=_call_note(), help=f"pass {name}.{conversion}")
    if not array.flags.c_contiguous and parameter.strides is None:
        strides = [stride // array.itemsize for stride in array.strides]
        msg = f"{name} has gaps between its elements: shape {list(array.shape)}, strides {strides} elements"
        copy = f"{name}.contiguous()" if is_torch else f"numpy.ascontiguousarray({name})"
        advice = f"pass {copy}" + ("; it is a copy, so read the result from it" if written else "")
        raise TileError(msg, code="T404", location=where, notes=_call_note(), help=advice)
    if written and not array.flags.writeable:
        msg = f"the kernel writes {name}, and the array is read-only"
        raise TileError(msg, code="T404", location=where, notes=_call_note(), help=f"pass a copy: {name}.copy()")
    return array


def _described(argument: object) -> str:
    if argument is None or isinstance(argument, (bool, int, float, str)):
        return repr(argument)
    return f"an array of shape {list(argument.shape)}" if is_tensor(argument) else f"a {type(argument).__name__}"


def _number(parameter: Parameter, argument: object) -> np.generic:
    dtype = parameter.dtype
    accepted: tuple[type, ...] = (bool, np.bool_) if dtype.is_bool else (int, np.integer)
    if dtype.is_float:
        accepted = (int, float, np.integer, np.floating)
    fits = isinstance(argument, accepted) and (dtype.is_bool or not isinstance(argument, (bool, np.bool_)))
    number = argument.item() if isinstance(argument, np.generic) else argument
    refusal = numbers.refusal(number, dtype, "it") if fits and isinstance(number, (int, float)) else None
    if not fits or refusal is not None:
        msg = f"{parameter.name} must be a number of type {dtype}; got {_described(argument)}"
        kind = "a float" if dtype.is_float else "a bool" if dtype.is_bool else "an int in its range"
        raise TileError(msg, code="T405", location=parameter.location, notes=_call_note(),
                        help=refusal.help if refusal is not None and dtype.is_float else f"pass {kind}")
    made: np.generic = dtype.numpy.type(argument)
    return made


def _in_declared_shape(parameter: Parameter, array: Array, symbols: Mapping[str, int], *, flat: bool) -> Array:
    """Returns the array in the shape that the kernel declares.

    A kernel gets the address of an array, so an array with the declared number of elements is the same memory in any shape.
    With ``flat``, arrays with another number of elements are accepted too: of an array with more elements the kernel accesses
    the first ones, and an array with fewer elements becomes one-dimensional. A warning is issued if the array has the declared
    number of axes but other sizes, because the caller possibly exchanged rows and columns.
    """
    assert parameter.shape is not None
    declared = parameter.array_shape([size_of(size, symbols) for size in parameter.shape])
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
        raise TileError(msg, code="T403", location=parameter.location, notes=_call_note(),
                        help="pass an array of the declared shape, or make the kernel for the shape of the array")
    seen = "the kernel views the array's memory in the declared shape"
    is_transposed = array.ndim == 2 and array.shape == declared[::-1]
    also = ": it does not exchange rows and columns" if is_transposed else ""
    warn_at(TileError(msg, code="T403", location=user_location(), help=seen + also))
    return array.reshape(-1)[:count].reshape(declared if array.size >= count else -1)


def _with_gaps(parameter: Parameter, array: Array, symbols: Mapping[str, int], written: bool) -> Array:
    """Returns the memory of an array that is not contiguous, from its first to its last element, as an array with one axis.

    Args:
        parameter: the parameter, with its declared sizes and strides.
        array: the array that the user passes.
        symbols: the values of the symbolic sizes.
        written: whether the kernel writes the array.

    Raises:
        TileError: T403, the array has other sizes than the parameter; T404, it has other strides, or rows that overlap.
    """
    assert parameter.shape is not None and parameter.strides is not None
    declared, strides = (tuple(size_of(size, symbols) for size in sizes) for sizes in (parameter.shape, parameter.strides))
    if array.shape != declared or 0 in declared:
        msg = f"{parameter.name} has shape {list(declared)}; the array has {list(array.shape)}"
        raise TileError(msg, code="T403", location=parameter.location, notes=_call_note(), help="pass an array of this shape")
    steps = [(stride, step) for stride, step, size in zip(strides, array.strides, array.shape, strict=True) if size > 1]
    if any(stride * array.itemsize != step for stride, step in steps):
        have = [step // array.itemsize for step in array.strides]
        raise TileError(f"{parameter.name} has strides {list(strides)}; the array has {have}", code="T404",
                        location=parameter.location, notes=_call_note(), help="pass an array with these strides, in elements")
    inner = 0
    for size, stride in sorted(zip(declared, strides, strict=True), key=lambda pair: pair[1]):
        if size > 1 and stride <= inner and written:
            msg = (f"the kernel writes {parameter.name}, and elements of the array share memory: shape {list(declared)}, "
                   f"strides {list(strides)}")
            raise TileError(msg, code="T404", location=parameter.location, notes=_call_note(),
                            help=f"pass a copy: {parameter.name}.copy()")
        inner += (size - 1) * stride
    return np.lib.stride_tricks.as_strided(array, (inner + 1,), (array.itemsize,), writeable=array.flags.writeable)


def _extent(parameter: Parameter, symbols: Mapping[str, int]) -> int:
    """Returns the number of elements from the first to the last one of a tensor with gaps."""
    assert parameter.shape is not None and parameter.strides is not None
    sizes, strides = ([size_of(size, symbols) for size in declared] for declared in (parameter.shape, parameter.strides))
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))


def size_of(size: int | Sym, symbols: Mapping[str, int]) -> int:
    """Returns the value of a dimension, which is a constant or an expression of symbolic dimensions.

    Args:
        size: the dimension.
        symbols: the values of the symbolic dimensions, by name.

    Raises:
        KeyError: the expression contains a symbolic dimension that has no value.
    """
    return size.evaluate(symbols) if isinstance(size, Sym) else size


def _declared_sizes(parameter: Parameter, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape in elements of the array of a tensor, the inverse of :meth:`Parameter.array_shape`."""
    return (*sizes[:-1], 2 * sizes[-1]) if parameter.dtype.packed else sizes


def _in_bytes(array: Array) -> Array:
    """Returns the memory of a tensor of elements of 4 bits as pairs of elements in bytes of type int8.

    An array of int8 or uint8 has the pairs. ``torch.int4`` has a byte for each element, of which a kernel uses the first half:
    the tensor's elements in the packed order.

    Args:
        array: the caller's array.
    """
    if array.dtype.itemsize == 1 and array.dtype.kind in "iu":
        return array.view(np.int8)
    return array if array.dtype != INT4_OF_TORCH else array.view(np.int8).reshape(-1)[:array.size // 2].reshape(
        (*array.shape[:-1], array.shape[-1] // 2))


def _fill_uninitialised(array: Array, dtype: DType) -> None:
    """Fills an array that has no defined contents: with NaN for floats, for integers with a byte that results rarely contain.
    """
    if dtype.is_float and dtype.stored == dtype:
        array.fill(np.nan)
    elif dtype.is_bool:
        array.fill(0)
    else:
        array.view(np.uint8)[...] = 0xA5
