"""Arguments of a launch: who supplies each one, and checks of those that the user passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.simulator.machine.aliasing_arguments import range_copies
from tilelang_npu.simulator.machine.memory import Array, as_bytes, untouched
from tilelang_npu.target.dtypes import DType

Role = Literal["user", "ffts", "lock", "workspace", "grid"]
LOCK_BYTES = 64 * 64
"""Bytes of the lock buffer, a cache line for each of 64 locks: the simulator keeps no locks, but the argument needs an
address."""
GRID = 3
"""Number of trailing i32 arguments that hold the grid (docs/hivm.md#arguments: program numbers x, y, z)."""


@dataclass(frozen=True)
class FunctionParameter:
    """An argument of a device function.

    Attributes:
        index: its position in the function.
        name: its name in the module's text.
        role: who supplies it.
        shape: sizes of a memref, -1 where dynamic; None for a scalar.
        element: element type.
    """

    index: int
    name: str
    role: Role
    shape: tuple[int, ...] | None
    element: DType

    @property
    def spelled(self) -> str:
        """The parameter as text, for messages."""
        if self.shape is None:
            return f"{self.name}: {self.element}"
        sizes = " x ".join("?" if size < 0 else str(size) for size in self.shape)
        return f"{self.name}: {self.element} [{sizes}]"


Form = tuple[np.dtype[Any], tuple[int, ...]]
"""Element type and shape of an array."""
Held = Iterable[tuple[Array, Mapping[int, slice]]]
"""Memory ranges, each with the slices of the arguments in it."""


@dataclass(frozen=True)
class BoundArguments:
    """The arguments of one launch, as generated code takes them, by position in the function."""

    arrays: tuple[Array | None, ...]
    """Bytes of each tensor; None for scalars."""
    scalars: tuple[float, ...]
    dims: tuple[tuple[int, ...], ...]
    users: tuple[int, ...]
    """Positions of the arguments that the user passes."""
    given: tuple[object, ...]
    """The user's arguments as passed."""
    parameters: tuple[FunctionParameter, ...]

    def copied(self, which: Iterable[int]) -> BoundArguments:
        """Returns the same arguments with copies of some arrays; arrays that overlap still do."""
        return self._over(range_copies(self.arrays, which), self._forms)

    @property
    def _forms(self) -> list[Form | None]:
        return [(value.dtype, value.shape) if isinstance(value, np.ndarray) else None for value in self.given]

    def _over(self, memories: Held, forms: Sequence[Form | None]) -> BoundArguments:
        """Returns the same arguments with arrays in other memory, of the given types and shapes where the user passed them."""
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
    """Matches the user's arguments with the parameters of the function.

    Args:
        name: name of the device function.
        declared: its ``parameters``.
        args: the user's arguments.
        blocks: blocks of the launch.
        workspace_bytes: bytes of workspace of each block.
        used: the parameters that some op accesses; a workspace that no op accesses is not initialised.
        grid: whether the last parameters are the three sizes of the grid.

    Raises:
        TileError: T401, wrong number; T402, wrong element type; T403, wrong size; T404, not contiguous; T405, not a number
            for a scalar, or not an array for a tensor.
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
                                "machine's memory", code="T502", help="launch fewer blocks, or share a workspace") from None
            shape = (array.size,)
        elif parameter.role == "grid":
            scalar = blocks if parameter.index == len(declared) - GRID else 1
        arrays.append(array)
        scalars.append(scalar)
        dims.append(shape)
    return BoundArguments(tuple(arrays), tuple(scalars), tuple(dims), tuple(users), tuple(args), tuple(declared))


def _with_grid(name: str, declared: Sequence[FunctionParameter], count: int, is_grid: bool) -> Sequence[FunctionParameter]:
    """Returns the parameters with the role ``grid`` for trailing ones that the user does not pass."""
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
                    help=f"give a number of type {parameter.element}")


def _tensor(parameter: FunctionParameter, given: object) -> tuple[Array, tuple[int, ...]]:
    if not isinstance(given, np.ndarray):
        raise TileError(f"argument {parameter.spelled} got {type(given).__name__}", code="T405", help="give a NumPy array")
    if given.dtype != parameter.element.numpy:
        raise TileError(f"argument {parameter.spelled} got an array of {given.dtype}", code="T402",
                        help=f"convert it: .astype({parameter.element.numpy})")
    if not given.flags.c_contiguous:
        raise TileError(f"argument {parameter.spelled} got an array that is not contiguous", code="T404",
                        notes=(f"shape {given.shape}, strides {given.strides}",), help="np.ascontiguousarray")
    assert parameter.shape is not None
    shape = _fitted(parameter.shape, given)
    if shape is None:
        raise TileError(f"argument {parameter.spelled} got an array of shape {given.shape}", code="T403")
    return as_bytes(given), shape


def _fitted(declared: tuple[int, ...], given: Array) -> tuple[int, ...] | None:
    """Returns the sizes of a memref over an array: the array's own, or any with as many elements; None if none fit.

    A flat array may have fewer elements than a memref of several axes; accesses beyond its end are errors at run time.
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
