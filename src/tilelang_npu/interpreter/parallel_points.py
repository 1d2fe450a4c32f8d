"""Executes a ``T.Parallel`` on arrays: the body runs once, and each scalar in it has one value for each point of the loop.

The result is that of running the body point by point if no point uses an element that another point stores. So accesses are
recorded. :class:`NeedsPoints` is raised where two of them overlap at different indices of one buffer, where two points store to
one element, or where the body needs a single number instead of an array. The stores are then undone, and the loop runs point
by point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.interpreter.running_core import Core, current, fail
from tilelang_npu.interpreter.typed_scalars import INDEX, IndexInt, NeedsPoints, TypedScalar, truth

if TYPE_CHECKING:
    from tilelang_npu.interpreter.host_buffers import HostBuffer, ScalarVariable


class ParallelPoints:
    """The points of a ``T.Parallel``.

    Attributes:
        extents: the extents of the loop.
        mask: for each point whether the conditions of the enclosing branches hold; None outside of branches.
    """

    def __init__(self, extents: Sequence[int]) -> None:
        self.extents = tuple(extents)
        self.mask: Any = None
        self._loads: dict[int, list[tuple[Any, ...]]] = {}
        self._stores: dict[int, list[tuple[Any, ...]]] = {}
        self._views: dict[int, Any] = {}
        self._undo: list[tuple[Any, Any, Any]] = []
        self._variables: dict[int, ScalarVariable] = {}
        self._read_first: set[int] = set()

    def indices(self) -> list[TypedScalar]:
        """The variables of the loop, with one value for each point."""
        found = []
        for axis, size in enumerate(self.extents):
            shape = [1] * len(self.extents)
            shape[axis] = size
            found.append(TypedScalar(np.arange(size, dtype=np.int64).reshape(shape), INDEX, (axis, 0, 1, size)))
        return found

    # --- accesses --------------------------------------------------------------------------------------------------------

    def load(self, buffer: HostBuffer, indices: Sequence[Any]) -> Any:
        """The elements that all points read."""
        key = self._key(indices)
        self._note(buffer, key, writes=False)
        places, order = self._slices(buffer, key)
        if places is not None:
            return self._spread(buffer.array[places], key, order).copy()
        return buffer.array[self._arrays(buffer, indices)]

    def store(self, buffer: HostBuffer, indices: Sequence[Any], value: Any) -> None:
        """Stores an element for each point."""
        key = self._key(indices)
        self._note(buffer, key, writes=True)
        places, order = self._slices(buffer, key)
        covered = {part[1] for part in key if part[0] == "span"}
        missing = [axis for axis, size in enumerate(self.extents) if size > 1 and axis not in covered]
        if places is not None:
            if missing:
                raise NeedsPoints
            target = buffer.array[places]
            self._undo.append((buffer.array, places, target.copy()))
            value = np.broadcast_to(value, self.extents)
            spread = self._spread(target, key, order)
            np.copyto(spread, value, where=True if self.mask is None else self.mask)
            return
        arrays = np.broadcast_arrays(*self._arrays(buffer, indices), np.empty(self.extents, np.int8))[:-1]
        chosen = [array.reshape(-1) for array in arrays]
        values = np.broadcast_to(value, self.extents).reshape(-1)
        if self.mask is not None:
            held = np.broadcast_to(self.mask, self.extents).reshape(-1)
            chosen, values = [array[held] for array in chosen], values[held]
        flat = np.ravel_multi_index(tuple(chosen), buffer.array.shape)
        if np.unique(flat).size != flat.size:
            raise NeedsPoints
        self._undo.append((buffer.array, tuple(chosen), buffer.array[tuple(chosen)]))
        buffer.array[tuple(chosen)] = values

    def read_before_written(self, variable: ScalarVariable) -> None:
        """Notes that a variable was read before the loop has stored it: a later store would be visible to the next point."""
        self._read_first.add(id(variable))

    def assign(self, variable: ScalarVariable, value: Any) -> None:
        """Assigns a variable: each point sees its own value, and the last point's value remains after the loop."""
        if id(variable) in self._read_first:
            raise NeedsPoints
        if self.mask is not None:
            if variable.lanes is None:
                raise NeedsPoints
            value = np.where(self.mask, value, variable.lanes.value)
        variable.lanes = TypedScalar(value, variable.kind)
        self._variables[id(variable)] = variable

    def finish(self, *, keep: bool) -> None:
        """Ends the loop; without ``keep`` its stores are undone."""
        for variable in self._variables.values():
            if keep and variable.lanes is not None:
                variable.array[0] = np.broadcast_to(variable.lanes.value, self.extents).reshape(-1)[-1]
            variable.lanes = None
        if not keep:
            for array, places, before in reversed(self._undo):
                array[places] = before

    # --- places ----------------------------------------------------------------------------------------------------------

    @staticmethod
    def _key(indices: Sequence[Any]) -> tuple[Any, ...]:
        """The indices of an access in a form that can be compared: an integer, a span or an array for each axis."""
        return tuple(("span", *index.span) if isinstance(index, TypedScalar) and index.span is not None
                     else ("array", index.value) if isinstance(index, TypedScalar) else ("at", int(index)) for index in indices)

    def _note(self, buffer: HostBuffer, key: tuple[Any, ...], *, writes: bool) -> None:
        root = id(buffer.root)
        seen = self._views.setdefault(root, buffer)
        against = [*self._stores.get(root, ()), *(self._loads.get(root, ()) if writes else ())]
        if against and seen.array is not buffer.array:
            raise NeedsPoints  # the buffer is accessed with two shapes
        for other in against:
            if not _same(key, other) and not _disjoint(key, other):
                raise NeedsPoints
        if writes and any(part[0] == "array" for part in key) and self._loads.get(root):
            raise NeedsPoints
        kept = (self._stores if writes else self._loads).setdefault(root, [])
        if not any(_same(key, other) for other in kept):
            kept.append(key)

    def _slices(self, buffer: HostBuffer, key: tuple[Any, ...]) -> tuple[tuple[Any, ...] | None, list[int]]:
        """The access as slices of the buffer, and the loop's axis of each slice; None where an index is not an integer or a
        span.
        """
        places: list[Any] = []
        order: list[int] = []
        for part, size in zip(key, buffer.array.shape, strict=True):
            if part[0] == "at":
                if not 0 <= part[1] < size:
                    return None, []
                places.append(part[1])
            elif part[0] == "span":
                _, axis, first, step, count = part
                if axis in order or first < 0 or first + step * (count - 1) >= size:
                    return None, []
                places.append(slice(first, first + step * (count - 1) + 1, step))
                order.append(axis)
            else:
                return None, []
        return tuple(places), order

    def _spread(self, found: Any, key: tuple[Any, ...], order: Sequence[int]) -> Any:
        """An array with an axis for each slice, seen with an axis for each axis of the loop; it shares memory."""
        turned = found.transpose(sorted(range(len(order)), key=order.__getitem__)) if len(order) > 1 else found
        shape = [self.extents[axis] if axis in order else 1 for axis in range(len(self.extents))]
        return turned.reshape(shape) if turned.shape != tuple(shape) else turned

    def _arrays(self, buffer: HostBuffer, indices: Sequence[Any]) -> tuple[Any, ...]:
        """The indices as arrays; 0 for points at which the enclosing branches do not hold.

        Raises:
            TileError: T130, an index is outside of its axis.
        """
        found = []
        for axis, (index, size) in enumerate(zip(indices, buffer.array.shape, strict=True)):
            places = np.asarray(index.value if isinstance(index, TypedScalar) else int(index))
            if self.mask is not None:
                places = np.where(self.mask, places, 0)
            if places.size and not 0 <= places.min() <= places.max() < size:
                wrong = places[(places < 0) | (places >= size)].flat[0]
                raise fail(f"index {wrong} is outside axis {axis} of {buffer.describe()}", f"valid are 0 to {size - 1}", "T130")
            found.append(places)
        return tuple(found)


def _same(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return len(left) == len(right) and all(
        a[0] == b[0] and (np.array_equal(a[1], b[1]) if a[0] == "array" else a == b) for a, b in zip(left, right, strict=True))


def _bounds(part: tuple[Any, ...]) -> tuple[int, int]:
    if part[0] == "at":
        return part[1], part[1]
    if part[0] == "span":
        return part[2], part[2] + part[3] * (part[4] - 1)
    return int(part[1].min()), int(part[1].max())


def _disjoint(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    """Whether two accesses are known to have no element in common."""
    return len(left) == len(right) and any(
        _bounds(a)[1] < _bounds(b)[0] or _bounds(b)[1] < _bounds(a)[0] for a, b in zip(left, right, strict=True))


class Pass:
    """One execution of the body of a ``T.Parallel``: on arrays, or for one point."""

    def __init__(self, core: Core, indices: Sequence[Any], points: ParallelPoints | None) -> None:
        self._core, self._indices, self._points = core, indices, points
        self.failed = False

    def __enter__(self) -> Any:
        self._core.points, self._core.in_parallel = self._points, True
        return self._indices[0] if len(self._indices) == 1 else tuple(self._indices)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        self._core.points, self._core.in_parallel = None, False
        if self._points is None:
            return False
        # an error on arrays is raised again by the point that has it, with its indices
        self.failed = kind is not None and issubclass(kind, (NeedsPoints, TileError, TypeError, ValueError, IndexError))
        self._points.finish(keep=kind is None)
        return self.failed


def passes(core: Core, extents: Sequence[int], *, on_arrays: bool) -> Iterator[Pass]:
    """The executions of the body: one on arrays, or one for each point where arrays do not work."""
    sizes = [max(0, int(size)) for size in extents]
    if on_arrays and 0 not in sizes:
        points = ParallelPoints(sizes)
        whole = Pass(core, points.indices(), points)
        yield whole
        if not whole.failed:
            return
    for place in np.ndindex(*sizes):
        yield Pass(core, [IndexInt(index) for index in place], None)


def cases(condition: Any) -> Iterator[bool]:
    """The branches of an ``if`` to execute: one of them, or on arrays both, each for the points where it is taken."""
    points = current().points
    test = truth(condition) if points is not None and not isinstance(condition, (bool, int)) else condition
    if points is None or not isinstance(test, TypedScalar) or not np.ndim(test.value):
        yield bool(test)
        return
    outer = points.mask
    try:
        for branch in (True, False):
            held = test.value if branch else ~test.value
            points.mask = held if outer is None else outer & held
            if points.mask.any():
                yield branch
    finally:
        points.mask = outer


def under(condition: TypedScalar, branch: bool, evaluate: Any) -> Any:
    """The value of an expression for the points where a condition is true, or false."""
    points = current().points
    assert points is not None
    outer = points.mask
    held = condition.value if branch else ~condition.value
    points.mask = held if outer is None else outer & held
    try:
        return evaluate()
    finally:
        points.mask = outer
