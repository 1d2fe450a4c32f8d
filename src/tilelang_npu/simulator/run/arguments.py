"""Arguments of a launch: who supplies each one, and checks of those that the user passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.simulator.machine.aliasing_arguments import memory_ranges, range_copies
from tilelang_npu.simulator.machine.memory import Array, as_bytes, untouched
from tilelang_npu.target.dtypes import DType

Role = Literal["user", "ffts", "lock", "workspace", "grid"]
LOCK_BYTES = 64 * 64
"""Bytes of the lock buffer, a cache line for each of 64 locks. The simulator keeps no locks, but the argument is a buffer."""
GRID = 3
"""Number of trailing i32 arguments that hold the grid (docs/hivm.md#arguments: program numbers x, y, z)."""


@dataclass(frozen=True)
class FunctionParameter:
    """A parameter of a device function.

    Attributes:
        index: the position of the parameter among the parameters of the function.
        name: the name of the parameter in the module's text.
        role: ``user`` if the user passes its value. Otherwise the runtime supplies the buffer or number that the role names.
        shape: the sizes of a memref, with -1 for a dynamic size; None for a scalar.
        element: the element type of a memref, or the type of a scalar.
    """

    index: int
    name: str
    role: Role
    shape: tuple[int, ...] | None
    element: DType

    @property
    def spelled(self) -> str:
        """The name, type and sizes of the parameter as messages write them: ``A: float16 [64 x ?]``."""
        if self.shape is None:
            return f"{self.name}: {self.element}"
        sizes = " x ".join("?" if size < 0 else str(size) for size in self.shape)
        return f"{self.name}: {self.element} [{sizes}]"


Form = tuple[np.dtype[np.generic], tuple[int, ...]]
"""Element type and shape of an array."""
Held = Iterable[tuple[Array, Mapping[int, slice]]]
"""The bytes of memory ranges, each with the slice of every argument in it, by the argument's position."""


@dataclass(frozen=True)
class BoundArguments:
    """The arguments of one launch, converted to the byte arrays and numbers that generated code takes."""

    arrays: tuple[Array | None, ...]
    """For each parameter of the function, the bytes of the argument; None for a scalar."""
    scalars: tuple[float, ...]
    """For each parameter of the function, the value of a scalar; 0 for a tensor."""
    dims: tuple[tuple[int, ...], ...]
    """For each parameter of the function, the sizes of a tensor; empty for a scalar."""
    users: tuple[int, ...]
    """For each argument that the user passes, the position of its parameter."""
    given: tuple[object, ...]
    """The arguments of the user, as the user passed them."""
    parameters: tuple[FunctionParameter, ...]
    """The parameters of the function; their role is ``grid`` if the user does not pass the sizes of the grid."""

    def copied(self, which: Iterable[int]) -> BoundArguments:
        """Returns the same arguments with copies of some arrays; the copies of overlapping arrays overlap in the same way.

        Args:
            which: the positions of the arrays to copy.
        """
        return self._over(range_copies(self.arrays, which), self._forms)

    def blank(self) -> BoundArguments:
        """Returns the same arguments with zeros in all arrays, which take no memory until somebody reads or writes them."""
        memories = [(np.zeros(memory.size, np.uint8), {
            number: slice(delta, delta + array.nbytes) for number, delta in memory.delta.items()
            if (array := self.arrays[number]) is not None}) for memory in memory_ranges(self.arrays)]
        return self._over(memories, self._forms)

    @property
    def _forms(self) -> list[Form | None]:
        return [(value.dtype, value.shape) if isinstance(value, np.ndarray) else None for value in self.given]

    def _over(self, memories: Held, forms: Sequence[Form | None]) -> BoundArguments:
        """Returns the same arguments with arrays in other memory.

        Args:
            memories: pairs of the bytes of a memory range and, for each argument in it, the slice that the argument occupies.
            forms: for each argument of the user, the element type and shape of the array; None for a number.
        """
        made = {number: held[place] for held, places in memories for number, place in places.items()}
        given = list(self.given)
        for position, (number, form) in enumerate(zip(self.users, forms, strict=True)):
            if form is not None and number in made:
                given[position] = made[number].view(form[0]).reshape(form[1])
        arrays = tuple(made.get(number, array) for number, array in enumerate(self.arrays))
        return replace(self, arrays=arrays, given=tuple(given))

    def __reduce__(self) -> tuple[object, ...]:
        forms = self._forms
        numbers = tuple(None if form else value for form, value in zip(forms, self.given, strict=True))
        empty = (None,) * len(self.arrays), self.scalars, self.dims, self.users, numbers, self.parameters
        return _bound, (empty, list(range_copies(self.arrays, range(len(self.arrays)))), forms)


def _bound(empty: tuple[Any, ...], memories: Held, forms: Sequence[Form | None]) -> BoundArguments:
    return BoundArguments(*empty)._over(memories, forms)


def bind(name: str, declared: Sequence[FunctionParameter], args: Sequence[object], blocks: int, workspace_bytes: int,
         used: frozenset[int], *, grid: bool) -> BoundArguments:
    """Checks the user's arguments against the parameters of the function, and adds the arguments that the runtime supplies.

    Args:
        name: the name of the device function.
        declared: the parameters of the function.
        args: the user's arguments in order.
        blocks: the number of blocks of the launch.
        workspace_bytes: the bytes of workspace of each block.
        used: the positions of the parameters that some op accesses; a workspace that no op accesses is not initialised.
        grid: whether the last three parameters are the sizes of the grid, which the user can leave out.

    Raises:
        TileError: T401, the number of arguments is wrong; T402, an array has another element type; T403, an array has other
            sizes; T404, an array is not contiguous; T405, an argument is not a number for a scalar, or not an array for a
            tensor; T502, the workspace does not fit into the memory of this machine.
    """
    declared = _with_grid(name, declared, len(args), grid)
    arrays: list[Array | None] = []
    scalars: list[float] = []
    dims: list[tuple[int, ...]] = []
    users = []
    rest = iter(args)
    for parameter in declared:
        array: Array | None = None
        scalar: float = 0
        shape: tuple[int, ...] = ()
        if parameter.role == "user":
            users.append(parameter.index)
            given = next(rest)
            if parameter.shape is None:
                scalar = _scalar(parameter, given)
            else:
                array, shape = _tensor(parameter, given)
        elif parameter.role == "lock":
            array = np.zeros(LOCK_BYTES, np.uint8)
            shape = (array.size,)
        elif parameter.role == "workspace":
            try:
                size = max(workspace_bytes * blocks, 1)
                array = np.full(size, 0xFF, np.uint8) if parameter.index in used else untouched(size)
            except MemoryError:
                raise TileError(f"a workspace of {workspace_bytes} bytes for each of {blocks} blocks does not fit in this "
                                "machine's memory", code="T502",
                                help="launch fewer blocks, or give each block less workspace") from None
            shape = (array.size,)
        elif parameter.role == "grid":
            scalar = blocks if parameter.index == len(declared) - GRID else 1
        arrays.append(array)
        scalars.append(scalar)
        dims.append(shape)
    return BoundArguments(tuple(arrays), tuple(scalars), tuple(dims), tuple(users), tuple(args), tuple(declared))


def _with_grid(name: str, declared: Sequence[FunctionParameter], count: int, is_grid: bool) -> Sequence[FunctionParameter]:
    """Returns the parameters. If the user passes no sizes of the grid, the last three parameters get the role ``grid``.

    Args:
        name: the name of the kernel, for the error.
        declared: the parameters of the function.
        count: the number of arguments that the user passes.
        is_grid: whether the last three parameters are the sizes of the grid.

    Raises:
        TileError: T401, the number of the user's arguments is wrong.
    """
    user = [parameter for parameter in declared if parameter.role == "user"]
    last = declared[-GRID:]
    if count == len(user):
        return declared
    if is_grid and count == len(user) - GRID:
        return [*declared[:-GRID], *(FunctionParameter(p.index, p.name, "grid", None, p.element) for p in last)]
    wanted = user[:-GRID] if is_grid else user
    raise TileError(f"{name} takes {len(wanted)} arguments, {count} given", code="T401",
                    notes=tuple(parameter.spelled for parameter in wanted))


def _scalar(parameter: FunctionParameter, given: object) -> float:
    if isinstance(given, np.generic):
        given = given.item()
    if isinstance(given, (bool, int)) and not parameter.element.is_float:
        return bool(given) if parameter.element.is_bool else given
    if isinstance(given, (int, float)) and parameter.element.is_float:
        return float(parameter.element.numpy.type(given))
    raise TileError(f"argument {parameter.spelled} got {given!r}", code="T405",
                    help=f"pass a number of type {parameter.element}")


def _tensor(parameter: FunctionParameter, given: object) -> tuple[Array, tuple[int, ...]]:
    if not isinstance(given, np.ndarray):
        raise TileError(f"argument {parameter.spelled} got {type(given).__name__}", code="T405", help="pass a NumPy array")
    if given.dtype != parameter.element.numpy:
        raise TileError(f"argument {parameter.spelled} got an array of {given.dtype}", code="T402",
                        help=f"convert it: .astype({parameter.element.numpy})")
    if not given.flags.c_contiguous:
        raise TileError(f"argument {parameter.spelled} got an array that is not contiguous", code="T404",
                        notes=(f"shape {given.shape}, strides {given.strides}",),
                        help="pass a contiguous copy: np.ascontiguousarray(array)")
    assert parameter.shape is not None
    shape = _fitted(parameter.shape, given)
    if shape is None:
        raise TileError(f"argument {parameter.spelled} got an array of shape {given.shape}", code="T403")
    return as_bytes(given), shape


def _fitted(declared: tuple[int, ...], given: Array) -> tuple[int, ...] | None:
    """Returns the sizes of a memref parameter for an array that the user passes; None if the array does not fit.

    The result is the array's shape if it fits the declared sizes, otherwise the declared sizes if they give as many elements as
    the array has. A one-dimensional array may have fewer elements than a memref of several axes; accesses beyond the array's
    end are errors at run time.

    Args:
        declared: the sizes of the parameter, with -1 for a dynamic size.
        given: the array.
    """
    if len(declared) == given.ndim and all(size in (-1, have) for size, have in zip(declared, given.shape, strict=True)):
        return given.shape
    known = int(np.prod([size for size in declared if size >= 0], dtype=np.int64))
    dynamic = sum(size < 0 for size in declared)
    if dynamic == 0:
        return declared if known == given.size or (given.ndim == 1 < len(declared) and given.size < known) else None
    if dynamic > 1 or not known or given.size % known:
        return None
    return tuple(given.size // known if size < 0 else size for size in declared)
