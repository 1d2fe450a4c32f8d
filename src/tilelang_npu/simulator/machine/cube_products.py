"""Matrix products of the Cube core on the hardware's layouts.

The terms of products that are added up in one accumulator are multiplied in chunks (``ops/products.py``): operands are
converted to f32 and collected until a chunk is complete, or until an op reads the accumulator. This is faster than one product
for each tile along K, and the bits of a result depend neither on the tiles nor on the ops that read the accumulator in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from tilelang_npu.ops.products import DEPTH, FRACTAL, is_chunked, multiply_chunk
from tilelang_npu.ops.rearrange import unpack_int4
from tilelang_npu.simulator.machine.datapath import panels, rows_of, widen
from tilelang_npu.simulator.machine.memory import Array

_EXACT = 1024
"""Number of products of two signed 8-bit numbers whose sum is exact in f32: 1024 * 128 * 128 = 2**24."""
_EXACT_UNSIGNED = 256
"""The same if a number is unsigned: 256 * 255 * 255 < 2**24."""
HF32_MASK = np.uint32(0xFFFFF000)
"""The bits of an f32 that HF32 keeps: the sign, the exponent and the upper 11 bits of the mantissa."""
_MOST_ACCUMULATORS = 32
"""The number of accumulators whose operands are collected at the same time. Each needs memory for a chunk of its operands."""
_JOINED = 1 << 20
"""The number of elements of a product of several blocks that BLAS computes at a time, which should fit a processor's cache."""

AnyArray = TypeVar("AnyArray")


@dataclass(frozen=True)
class Product:
    """The parameters of one matrix product. The object is immutable, and all launches share it.

    Attributes:
        a, b: the shapes of the operands' buffers: rank 4 for fractals, rank 2 for rows. For an operand whose size is known only
            at run time, the largest possible shape.
        c: the shape of the accumulator's buffer.
        a_transposed: whether the left operand is stored as [K, M].
        b_transposed: whether the right operand is stored as [N, K].
        wide: whether f32 operands are rounded to HF32.
        exact: whether operands and accumulator are integers.
        packed: whether the bytes of the operands hold two int4 elements each; ``a`` and ``b`` are then shapes in elements.
        depth: the number of terms of a chunk; 0 if all terms of a product are added at once, in the order of BLAS.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    c: tuple[int, ...]
    a_transposed: bool
    b_transposed: bool
    wide: bool
    exact: bool
    packed: bool = False
    depth: int = 0


def hf32(values: Array) -> Array:
    """Returns f32 values rounded to the nearest HF32 value; halfway cases are rounded away from zero."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    return ((bits + np.uint32(0x800)) & HF32_MASK).view(np.float32)


def _whole(size: int) -> int:
    return -(-size // FRACTAL) * FRACTAL


class _Operand:
    """The collected values of one operand, converted to f32.

    Args:
        shape: the shape of the operand's buffer: fractals ``[C1, R1, r0, c0]`` or rows.
        along_rows: whether K is the first axis of the stored matrix.
        wide: whether the values are rounded to HF32.
        batch: the sizes of the batch axes.
        room: the number of terms that can be collected, in addition to those of the buffer.

    Attributes:
        size: the number of rows or columns of the result that the operand has.
    """

    def __init__(self, shape: tuple[int, ...], *, along_rows: bool, wide: bool, batch: tuple[int, ...], room: int) -> None:
        rows, columns = (shape[0], shape[1]) if len(shape) == 2 else (shape[1] * shape[2], shape[0] * shape[3])
        depth, size = (rows, columns) if along_rows else (columns, rows)
        self.size = _whole(size)
        self._room = _whole(depth) + room
        self._along_rows, self._wide = along_rows, wide
        # Zeros: columns that pad the last fractal take part in products of BLAS.
        self._held = np.zeros((self._room, *batch, self.size) if along_rows else (*batch, self.size, self._room), np.float32)
        self._stored = np.moveaxis(self._held, 0, -2) if along_rows else self._held
        self._front = len(batch)
        self._scratch: dict[tuple[int, ...], Array] = {}

    def collect(self, values: Array, start: int) -> None:
        """Converts the values of a buffer to f32, and stores them as the terms from ``start`` on.

        Args:
            values: the values as rows, or as panels ``[..., blocks of columns, rows, c0]``.
            start: the number of terms that the operand has already.
        """
        matrix = values if values.ndim == self._front + 2 else rows_of(values)
        if matrix is None:
            self._collect_panels(values, start)
        else:
            self._take(matrix, self._place(start, matrix.shape[-2], matrix.shape[-1]))

    def _place(self, start: int, rows: int, columns: int) -> Array:
        """Returns the view of the values of a matrix, as it is stored, whose first term has the number ``start``."""
        if self._along_rows:
            return self._stored[..., start:start + rows, :columns]
        return self._stored[..., :rows, start:start + columns]

    def _collect_panels(self, values: Array, start: int) -> None:
        """Stores panels: they are converted as they are, and rows of 16 or 32 elements are then moved to their places, which is
        faster than a conversion directly to these places."""
        wide = self._contiguous(values.shape)
        self._take(values, wide)
        blocks, rows, width = values.shape[-3:]
        run = np.dtype((np.void, 4 * width))
        target = self._place(start, rows, blocks * width).view(run)
        target[...] = wide.view(run)[..., 0].swapaxes(-1, -2)

    def _take(self, values: Array, target: Array) -> None:
        if self._wide:
            target[...] = hf32(values)
        elif target.flags.c_contiguous:
            widen(values, target)
        else:  # the passes of the conversion take less time on a contiguous array
            wide = self._contiguous(values.shape)
            widen(values, wide)
            target[...] = wide

    def _contiguous(self, shape: tuple[int, ...]) -> Array:
        """Returns an f32 array whose contents last until the next call for this shape."""
        found = self._scratch.get(shape)
        if found is None:
            found = self._scratch[shape] = np.empty(shape, np.float32)
        return found

    def keep(self, first: int, stop: int) -> None:
        """Moves terms to the front."""
        terms = self._held if self._along_rows else np.moveaxis(self._held, -1, 0)
        terms[:stop - first] = terms[first:stop].copy()

    def terms(self, first: int, stop: int, size: int) -> Array:
        """Returns a view ``[..., size, terms]`` of some terms."""
        if self._along_rows:
            return np.moveaxis(self._held[first:stop, ..., :size], 0, -1)
        return self._held[..., :size, first:stop]

    def joined_terms(self, first: int, stop: int) -> Array:
        """Returns a view ``[blocks * size, terms]`` of some terms in all blocks of a batch."""
        if self._along_rows:
            return self._held.reshape(self._room, -1)[first:stop].T
        return self._held.reshape(-1, self._room)[:, first:stop]


class _Call(NamedTuple):
    """What the calls have in common that are added up in one accumulator.

    Attributes:
        product: the parameters.
        m, n: the numbers of rows and columns; ``n`` is rounded up to whole fractals where the accumulator is fractal.
        batches: the sizes of the batch axes of both operands.
    """

    product: Product
    m: int
    n: int
    batches: tuple[tuple[int, ...], tuple[int, ...]]


class _Accumulator:
    """An accumulator, and the operands of products whose sum it does not have yet.

    Args:
        call: the common properties of the products.
        target: the accumulator's elements as the product needs them: rows, or panels ``[..., blocks, m, 16]``.
        by_rows: whether ``target`` has rows.
        scratch: returns an f32 array of a shape, whose contents last until the next call.
        watched: whether the accumulator's memory may be changed between ops.

    Attributes:
        overlapping: other accumulators that have bytes in common with this one.
        live: whether the accumulator's memory holds the results of its products, apart from those that are collected.
    """

    def __init__(self, call: _Call, target: Array, *, by_rows: bool, scratch: _Scratch, watched: bool) -> None:
        product, front = call.product, len(call.batches[0])
        room = product.depth
        self._call, self._target, self._by_rows, self._scratch = call, target, by_rows, scratch
        self._left = _Operand(product.a, along_rows=product.a_transposed, wide=product.wide, batch=call.batches[0], room=room)
        self._right = _Operand(product.b, along_rows=not product.b_transposed, wide=product.wide, batch=call.batches[1],
                               room=room)
        self._watched = watched
        self._joins = (front == 2 and product.depth > 0 and call.batches[0][1] == call.batches[1][0] == 1
                       and target.shape[:2] == (call.batches[0][0], call.batches[1][1])
                       and (call.m, call.n) == (self._left.size, self._right.size))
        self.overlapping: list[_Accumulator] = []
        self.live = False
        self._terms = 0
        self._fresh = self._settled = True
        self._base: Array | None = None  # the accumulator before the present chunk, if a part of the chunk was added to it
        self._written: Array | None = None  # what the last part of a chunk left in the accumulator, if others may change that

    def add(self, a: Array, b: Array, init: bool, k: int, bias: Array | None) -> None:
        """Adds a product to the accumulator, or replaces its elements by the product if ``init``."""
        for other in self.overlapping:
            if other.live:
                other.settle()
                other.live = False
        if init or not self.live or self._is_overwritten():
            self.live, self._fresh, self._terms, self._base = True, init, 0, None
        if init and bias is not None:
            self._set_to_bias(bias)
        self._left.collect(a, self._terms)
        self._right.collect(b, self._terms)
        self._terms += k
        self._settled = False
        if not self._call.product.depth:
            self._add_at_once()
        elif self._terms >= self._call.product.depth:
            self._add_whole_chunks()

    def _is_overwritten(self) -> bool:
        """Whether the accumulator's memory was changed after a part of a chunk was added to it, by what watches the core."""
        return (self._watched and self._settled and self._written is not None
                and self._target.tobytes() != self._written.tobytes())

    def settle(self) -> None:
        """Writes the sum of all products to the accumulator."""
        if self._settled:
            return
        if self._fresh:
            self._store(0, self._terms, None)
        else:
            if self._base is None:
                self._base = self._target.copy()
            self._store(0, self._terms, self._base)
        self._settled = True
        if self._watched:
            self._written = self._target.copy()

    def _add_whole_chunks(self) -> None:
        depth = self._call.product.depth
        count, rest = divmod(self._terms, depth)
        for number in range(count):
            self._store(number * depth, (number + 1) * depth,
                        None if self._fresh else self._target if self._base is None else self._base)
            self._fresh, self._base = False, None
        if rest:
            self._left.keep(count * depth, self._terms)
            self._right.keep(count * depth, self._terms)
        self._terms, self._settled, self._written = rest, not rest, None

    def _add_at_once(self) -> None:
        """Adds all collected terms to the accumulator, in an order that BLAS chooses."""
        call = self._call
        left = self._left.terms(0, self._terms, call.m)
        right = self._right.terms(0, self._terms, call.n).swapaxes(-1, -2)
        made = self._arranged(np.matmul(left, right))
        if self._fresh:
            self._target[...] = made
        else:
            np.add(self._target, made, out=self._target)
        self._fresh, self._terms, self._settled, self._written = False, 0, True, None

    def _store(self, first: int, stop: int, base: Array | None) -> None:
        """Writes the sum of the terms ``first`` to ``stop`` and of ``base`` to the accumulator."""
        call, target = self._call, self._target
        if self._joins:
            self._store_joined(first, stop, base)
        else:
            direct = base is None and self._by_rows and target.strides[-1] == target.itemsize and not call.product.exact
            made = target if direct else self._scratch((*self._batch_of_target(), call.m, call.n))
            self._multiply(self._left.terms(first, stop, call.m),
                           self._right.terms(first, stop, call.n).swapaxes(-1, -2), made)
            if not direct:
                self._put(self._arranged(made), target, base)

    def _store_joined(self, first: int, stop: int, base: Array | None) -> None:
        """As :meth:`_store`, for a batch whose rows share left operands and whose columns share right operands: one call of
        BLAS for all columns and several rows."""
        call, target = self._call, self._target
        rows, columns = target.shape[:2]
        left, right = self._left.joined_terms(first, stop), self._right.joined_terms(first, stop).T
        each = max(1, _JOINED // (call.m * columns * call.n))
        for start in range(0, rows, each):
            some = slice(start, min(rows, start + each))
            count = some.stop - start
            whole = self._scratch((count * call.m, columns * call.n))
            self._multiply(left[start * call.m:some.stop * call.m], right, whole)
            made = self._arranged(whole.reshape(count, call.m, columns, call.n).swapaxes(1, 2))
            self._put(made, target[some], None if base is None else base[some])

    def _multiply(self, left: Array, right: Array, out: Array) -> None:
        """Writes the product of some terms to an f32 array; sums of integers are exact in any order."""
        if self._call.product.exact:
            np.matmul(left, right, out=out)
        else:
            multiply_chunk(left, right, out)

    def _put(self, made: Array, target: Array, base: Array | None) -> None:
        if base is None:
            target[...] = made
        else:
            np.add(base, made.astype(target.dtype) if self._call.product.exact else made, out=target)

    def _batch_of_target(self) -> tuple[int, ...]:
        return self._target.shape[:len(self._call.batches[0])]

    def _arranged(self, made: Array) -> Array:
        """Returns a product ``[..., m, n]`` in the layout of the accumulator."""
        if self._by_rows:
            return made
        return made.reshape(*made.shape[:-1], -1, FRACTAL).swapaxes(-2, -3)

    def _set_to_bias(self, bias: Array) -> None:
        """Sets each row of the accumulator to the bias, to which products are then added."""
        batch = bias.shape[:len(self._call.batches[0])]
        row = bias.reshape(*batch, -1)
        padded = np.zeros((*batch, 1, self._call.n), self._target.dtype)
        width = min(self._call.n, row.shape[-1])
        padded[..., 0, :width] = row[..., :width]
        self._target[...] = self._arranged(padded)
        self._fresh = False


@dataclass
class _Scratch:
    """An array that is used for one product at a time."""

    _held: Array = field(default_factory=lambda: np.empty(0, np.float32))

    def __call__(self, shape: tuple[int, ...]) -> Array:
        size = int(np.prod(shape))
        if self._held.size < size:
            self._held = np.empty(size, np.float32)
        return self._held[:size].reshape(shape)


class CubeProducts:
    """Computes the products of one core, or of the cores of a batch of blocks.

    Args:
        front: the number of leading batch axes of all arrays: 0, or 2 for a batch.

    Attributes:
        watched: whether an observer may change the core's memory between ops.
    """

    def __init__(self, front: int = 0) -> None:
        self._front = front
        self.watched = False
        self._made: dict[tuple[object, ...], _Accumulator] = {}
        self._products: dict[Product, Product] = {}
        self._scratch = _Scratch()

    def __call__(self, product: Product) -> CubeMultiplier:
        """Returns the function that computes a product."""
        return CubeMultiplier(self, self._products.setdefault(product, product))

    def settle(self, array: AnyArray) -> AnyArray:
        """Writes the sums of all products to their accumulators, and returns ``array``, which an op then reads."""
        for each in self._made.values():
            if each.live:
                each.settle()
        return array

    def forget(self) -> None:
        """Discards all products, before a new block begins."""
        for each in self._made.values():
            each.live = False

    def accumulator(self, product: Product, a: Array, b: Array, c: Array, m: int, n: int) -> _Accumulator:
        """Returns the accumulator in an array for products of a size. Where there is none yet, it is made."""
        front = self._front
        key = (id(product), c.__array_interface__["data"][0], m, n, a.shape[:front], b.shape[:front])
        found = self._made.get(key)
        return self._new(key, product, a, b, c, m, n) if found is None else found

    def _new(self, key: tuple[object, ...], product: Product, a: Array, b: Array, c: Array, m: int, n: int) -> _Accumulator:
        front = self._front
        if len(self._made) >= _MOST_ACCUMULATORS:
            self.settle(None)
            self._made.clear()
        flat = len(product.c) == 2
        width = n if flat else _whole(n)
        if flat:
            target, by_rows = c[..., :m, :n], True
        else:
            blocks = panels(c, front)[..., :width // FRACTAL, :m, :]
            rows = rows_of(blocks)
            target, by_rows = (blocks, False) if rows is None else (rows, True)
        call = _Call(product, m, width, (a.shape[:front], b.shape[:front]))
        made = _Accumulator(call, target, by_rows=by_rows, scratch=self._scratch, watched=self.watched)
        for other in self._made.values():
            if np.may_share_memory(other._target, target):
                other.overlapping.append(made)
                made.overlapping.append(other)
        self._made[key] = made
        return made


@dataclass(frozen=True)
class CubeMultiplier:
    """Computes one matrix product of a core's code.

    Attributes:
        products: the accumulators of the core.
        product: the parameters.
    """

    products: CubeProducts
    product: Product

    def __call__(self, a: Array, b: Array, c: Array, init: bool, m: int, k: int, n: int, bias: Array | None = None) -> None:
        """Computes ``c = a @ b`` or ``c += a @ b`` for the first rows and columns of the operands.

        The result is in ``c`` after :meth:`CubeProducts.settle` at the latest.

        Args:
            a, b, c: the buffers of the operands and of the accumulator.
            init: whether the result replaces the accumulator instead of being added to it.
            m, k, n: the sizes of the product; ``n`` is rounded up to whole fractals where ``c`` is fractal.
            bias: a row that is added to each row of the result if ``init`` holds; None for none.
        """
        front = self.products._front
        a, b = (panels(one, front) if one.ndim == front + 4 else one for one in (a, b))
        if self.product.packed:
            a, b = unpack_int4(a), unpack_int4(b)
        self.products.accumulator(self.product, a, b, c, m, n).add(a, b, init, k, bias)


class NoProducts:
    """Takes the place of :class:`CubeProducts` for generated code that computes no values."""

    watched = False

    def __call__(self, product: Product) -> None:
        """Returns None."""

    def settle(self, array: AnyArray) -> AnyArray:
        """Returns the array."""
        return array

    def forget(self) -> None:
        """Does nothing."""


def depth_of(a: str, b: str) -> int:
    """Returns the number of terms of a chunk (see ``Product``) for operands of two element types, which are NumPy names."""
    if is_chunked(a):
        return DEPTH
    if a == "float32":
        return 0
    return _EXACT_UNSIGNED if "uint8" in (a, b) else _EXACT


__all__ = ["CubeMultiplier", "CubeProducts", "NoProducts", "Product", "depth_of", "hf32"]
