"""Executes a ``T.Parallel`` on arrays: the body runs once, with one value per point (iteration) in each scalar.

This has the same result as running the body point by point if no point uses an element that another point stores. So all
accesses are recorded. :class:`NeedsPoints` is raised if two accesses to a buffer overlap at different indices, if two points
store to the same element, or if the body needs a single number instead of an array. The stores are then undone, and the body
runs point by point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.interpreter.running_core import Core, current, fail
from tilelang_npu.interpreter.threads import Guard, RestOfGuard
from tilelang_npu.interpreter.typed_scalars import INDEX, Array, IndexInt, Kind, NeedsPoints, Span, TypedScalar, Values, truth

R = TypeVar("R")
Index = int | TypedScalar
"""An index along an axis of a buffer: the same for all points, or one integer for each point."""
_Part = int | Span | Values
"""The form of an index in which two accesses are compared: an integer, a progression along an axis of the loop, or an array."""


class AccessedBuffer(Protocol):
    """What is used of a buffer (``HostBuffer``)."""

    array: Array
    safe_value: Values | None

    @property
    def is_global(self) -> bool: ...
    @property
    def root(self) -> AccessedBuffer: ...
    def describe(self) -> str: ...


class AssignedVariable(Protocol):
    """What is used of the variable of a ``T.alloc_var`` (``ScalarVariable``)."""

    array: Array
    lanes: TypedScalar | None

    @property
    def kind(self) -> Kind: ...


class ParallelPoints:
    """The points of a ``T.Parallel`` that is executed on arrays, and the record of its accesses.

    Attributes:
        extents: the extents of the loop.
        mask: a bool array which states for each point whether the point executes the current branch; None outside of branches.
    """

    def __init__(self, extents: Sequence[int]) -> None:
        self.extents = tuple(extents)
        self.mask: Array | None = None
        self._loads: dict[int, list[tuple[_Part, ...]]] = {}
        self._stores: dict[int, list[tuple[_Part, ...]]] = {}
        self._views: dict[int, AccessedBuffer] = {}
        self._undo: list[tuple[Array, tuple[int | slice | Array, ...], Array]] = []
        self._variables: dict[int, AssignedVariable] = {}
        self._read_first: set[int] = set()

    def indices(self) -> list[TypedScalar]:
        """Returns the variables of the loop as scalars with one value for each point."""
        found = []
        for axis, size in enumerate(self.extents):
            shape = [1] * len(self.extents)
            shape[axis] = size
            found.append(TypedScalar(np.arange(size, dtype=np.int64).reshape(shape), INDEX, Span(axis, 0, 1, size)))
        return found

    # --- accesses --------------------------------------------------------------------------------------------------------

    def load(self, buffer: AccessedBuffer, indices: Sequence[Index]) -> Values:
        """Returns the elements that the points read, as an array with one element per point; 0 past the end of a tensor.

        Args:
            buffer: the buffer.
            indices: the index along each axis of the buffer; it may have one value for each point.

        Raises:
            NeedsPoints: a point may have stored an element that another point reads.
        """
        key = self._key(indices)
        self._note(buffer, key, writes=False)
        places, order = self._slices(buffer, key)
        if places is not None:
            return self._spread(buffer.array[places], order).copy()
        safe = buffer.safe_value
        chosen, inside = self._arrays(buffer, indices, outside=safe is not None)
        found: Values = buffer.array[chosen]
        return found if inside is None else np.where(inside, found, np.zeros((), found.dtype) if safe is None else safe)

    def store(self, buffer: AccessedBuffer, indices: Sequence[Index], value: Values) -> None:
        """Stores one element per point, except for points past the end of a tensor.

        Args:
            buffer: the buffer.
            indices: the index along each axis of the buffer; it may have one value for each point.
            value: the stored value, or an array with one value for each point.

        Raises:
            NeedsPoints: two points store to the same element, or a point uses an element that another point stores.
        """
        key = self._key(indices)
        self._note(buffer, key, writes=True)
        places, order = self._slices(buffer, key)
        covered = {part.axis for part in key if isinstance(part, Span)}
        missing = [axis for axis, size in enumerate(self.extents) if size > 1 and axis not in covered]
        if places is not None:
            if missing:
                raise NeedsPoints
            target = buffer.array[places]
            self._undo.append((buffer.array, places, target.copy()))
            value = np.broadcast_to(value, self.extents)
            spread = self._spread(target, order)
            np.copyto(spread, value, where=True if self.mask is None else self.mask)
            return
        places_of_points, inside = self._arrays(buffer, indices)
        arrays = np.broadcast_arrays(*places_of_points, np.empty(self.extents, np.int8))[:-1]
        chosen = [array.reshape(-1) for array in arrays]
        values = np.broadcast_to(value, self.extents).reshape(-1)
        held = self.mask if inside is None else inside if self.mask is None else self.mask & inside
        if held is not None:
            stores = np.broadcast_to(held, self.extents).reshape(-1)
            chosen, values = [array[stores] for array in chosen], values[stores]
        flat = np.ravel_multi_index(tuple(chosen), buffer.array.shape)
        if np.unique(flat).size != flat.size:
            raise NeedsPoints
        self._undo.append((buffer.array, tuple(chosen), buffer.array[tuple(chosen)]))
        buffer.array[tuple(chosen)] = values

    def read_before_written(self, variable: AssignedVariable) -> None:
        """Records that a variable was read before the loop has assigned it.

        If the loop assigns the variable later, the next point would have to read the assigned value, so :meth:`assign` then
        raises ``NeedsPoints``.
        """
        self._read_first.add(id(variable))

    def assign(self, variable: AssignedVariable, value: Values) -> None:
        """Assigns a variable, with one value per point; after the loop, the variable has the value of the last point.

        Raises:
            NeedsPoints: the points would have to run one after another.
        """
        if id(variable) in self._read_first:
            raise NeedsPoints
        if self.mask is not None:
            if variable.lanes is None:
                raise NeedsPoints
            value = np.where(self.mask, value, variable.lanes.value)
        variable.lanes = TypedScalar(value, variable.kind)
        self._variables[id(variable)] = variable

    def finish(self, *, keep: bool) -> None:
        """Ends the loop.

        Args:
            keep: whether the loop's stores and assignments are kept; otherwise they are undone.
        """
        for variable in self._variables.values():
            if keep and variable.lanes is not None:
                variable.array[0] = np.broadcast_to(variable.lanes.value, self.extents).reshape(-1)[-1]
            variable.lanes = None
        if not keep:
            for array, places, before in reversed(self._undo):
                array[places] = before

    # --- places ----------------------------------------------------------------------------------------------------------

    @staticmethod
    def _key(indices: Sequence[Index]) -> tuple[_Part, ...]:
        """Returns the indices of an access in the form in which two accesses are compared."""
        return tuple((index.value if index.span is None else index.span) if isinstance(index, TypedScalar) else int(index)
                     for index in indices)

    def _note(self, buffer: AccessedBuffer, key: tuple[_Part, ...], *, writes: bool) -> None:
        root = id(buffer.root)
        seen = self._views.setdefault(root, buffer)
        against = [*self._stores.get(root, ()), *(self._loads.get(root, ()) if writes else ())]
        if against and seen.array is not buffer.array:
            raise NeedsPoints  # the buffer is accessed with two shapes
        for other in against:
            if not _same(key, other) and not _disjoint(key, other):
                raise NeedsPoints
        if writes and not all(isinstance(part, (int, Span)) for part in key) and self._loads.get(root):
            raise NeedsPoints
        kept = (self._stores if writes else self._loads).setdefault(root, [])
        if not any(_same(key, other) for other in kept):
            kept.append(key)

    def _slices(self, buffer: AccessedBuffer, key: tuple[_Part, ...]) -> tuple[tuple[int | slice, ...] | None, list[int]]:
        """Returns an access as slices of the buffer, and for each slice the axis of the loop along which it extends.

        Returns None in place of the slices if an index is neither an integer nor a span.
        """
        places: list[int | slice] = []
        order: list[int] = []
        for part, size in zip(key, buffer.array.shape, strict=True):
            if isinstance(part, int):
                if not 0 <= part < size:
                    return None, []
                places.append(part)
            elif isinstance(part, Span):
                axis, first, step, count = part
                if axis in order or first < 0 or first + step * (count - 1) >= size:
                    return None, []
                places.append(slice(first, first + step * (count - 1) + 1, step))
                order.append(axis)
            else:
                return None, []
        return tuple(places), order

    def _spread(self, found: Array, order: Sequence[int]) -> Array:
        """Returns a view of an array that has an axis for each slice; the view has an axis for each axis of the loop."""
        turned = found.transpose(np.argsort(order).tolist()) if len(order) > 1 else found
        shape = [self.extents[axis] if axis in order else 1 for axis in range(len(self.extents))]
        return turned.reshape(shape) if turned.shape != tuple(shape) else turned

    def _arrays(self, buffer: AccessedBuffer, indices: Sequence[Index], *, outside: bool = False
                ) -> tuple[tuple[Array, ...], Array | None]:
        """Returns the indices as arrays, with 0 for the points that do not execute the current branch or lie past the end of a
        tensor, and which points do not lie past the end; None if all do not. With ``outside``, points before the beginning are
        treated as those past the end.

        Raises:
            TileError: T130, an index is negative, or past the end of a buffer on chip.
        """
        found = []
        inside: Array | None = None
        for axis, (index, size) in enumerate(zip(indices, buffer.array.shape, strict=True)):
            places = np.asarray(index.value if isinstance(index, TypedScalar) else int(index))
            if self.mask is not None:
                places = np.where(self.mask, places, 0)
            if buffer.is_global and places.size and (places.max() >= size or (outside and places.min() < 0)):
                here = places < size
                if outside:
                    here &= places >= 0
                inside = here if inside is None else inside & here
                places = np.where(here, places, 0)
            if places.size and not 0 <= places.min() <= places.max() < size:
                wrong = places[(places < 0) | (places >= size)].flat[0]
                raise fail(f"index {wrong} is outside axis {axis} of {buffer.describe()}", f"valid are 0 to {size - 1}", "T130")
            found.append(places)
        return tuple(found), inside


def _same(left: tuple[_Part, ...], right: tuple[_Part, ...]) -> bool:
    return len(left) == len(right) and all(
        type(a) is type(b) and a == b if isinstance(a, (int, Span)) or isinstance(b, (int, Span)) else np.array_equal(a, b)
        for a, b in zip(left, right, strict=True))


def _bounds(part: _Part) -> tuple[int, int]:
    if isinstance(part, int):
        return part, part
    if isinstance(part, Span):
        return part.first, part.first + part.step * (part.size - 1)
    return int(part.min()), int(part.max())


def _disjoint(left: tuple[_Part, ...], right: tuple[_Part, ...]) -> bool:
    """Whether two accesses are known to have no element in common."""
    return len(left) == len(right) and any(
        _bounds(a)[1] < _bounds(b)[0] or _bounds(b)[1] < _bounds(a)[0] for a, b in zip(left, right, strict=True))


class Pass:
    """A context manager for one execution of the body of a ``T.Parallel``: on arrays for all points, or for one point.

    Its value is the loop variable, or the tuple of the loop variables.

    Args:
        core: the core that executes the loop.
        indices: the values of the loop variables.
        points: the points, if the body is executed on arrays; None for one point.
    """

    def __init__(self, core: Core, indices: Sequence[object], points: ParallelPoints | None) -> None:
        self._core, self._indices, self._points = core, indices, points
        self.failed = False

    def __enter__(self) -> object:
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
    """Yields a context manager for each execution of the body of a ``T.Parallel``.

    Args:
        core: the core that executes the loop.
        extents: the extents of the loop.
        on_arrays: whether the body is first executed on arrays. If that fails, or without it, the body is executed for each
            point.
    """
    sizes = [max(0, int(size)) for size in extents]
    if on_arrays and 0 not in sizes:
        points = ParallelPoints(sizes)
        whole = Pass(core, points.indices(), points)
        yield whole
        if not whole.failed:
            return
    for place in np.ndindex(*sizes):
        yield Pass(core, [IndexInt(index) for index in place], None)


def running_points() -> ParallelPoints | None:
    """Returns the points of the ``T.Parallel`` that this thread executes on arrays; None outside of one."""
    found = current().points
    assert found is None or isinstance(found, ParallelPoints)
    return found


def _held(condition: TypedScalar, branch: bool, outer: Array | None) -> Array:
    """Returns the points at which a condition has the value ``branch``, of those in ``outer``; None means all points."""
    held = np.equal(condition.value, branch)
    return held if outer is None else outer & held


def cases(condition: object) -> Iterator[bool]:
    """Yields True if the body of an ``if`` must be executed, and False if its ``else`` part must be.

    In a ``T.Parallel`` that is executed on arrays, both can be yielded; each part is then executed for the points that take it.
    For a condition on the index of a thread both are yielded if there are threads of both kinds.
    """
    if isinstance(condition, Guard):
        yield from (branch for branch, taken in zip((True, False), condition.sides, strict=True) if taken)
        return
    if isinstance(condition, RestOfGuard):
        raise fail("a condition on the index of a thread and another one has an `else` part",
                   "put the other condition into an `if` of its own, inside of that of the thread", "T190")
    points = running_points()
    test = truth(condition) if points is not None and not isinstance(condition, (bool, int)) else condition
    if points is None or not isinstance(test, TypedScalar) or not np.ndim(test.value):
        yield bool(test)
        return
    outer = points.mask
    try:
        for branch in (True, False):
            points.mask = _held(test, branch, outer)
            if points.mask.any():
                yield branch
    finally:
        points.mask = outer


def under(condition: TypedScalar, branch: bool, evaluate: Callable[[], R]) -> R:
    """Evaluates an expression for those points of a ``T.Parallel`` at which a condition has a given value, and returns the
    result.

    Args:
        condition: the condition, with one value per point.
        branch: the value of the condition at the points.
        evaluate: evaluates the expression.
    """
    points = running_points()
    assert points is not None
    outer, points.mask = points.mask, _held(condition, branch, points.mask)
    try:
        return evaluate()
    finally:
        points.mask = outer
