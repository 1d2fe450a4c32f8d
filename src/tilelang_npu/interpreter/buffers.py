"""Allocations, and the same memory under another shape or type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilelang_npu.interpreter.memory import Buffer, Memory, Variable, fail, integer, memory_of
from tilelang_npu.interpreter.state import Core, current
from tilelang_npu.interpreter.table import OPERATIONS, tiles
from tilelang_npu.target.dtypes import DType, dtype

_POISON = 0xFF
"""The byte of memory that nothing has written: -1 as an integer, NaN as a float."""


def sizes_of(shape: Any) -> tuple[int, ...]:
    """A shape as integers; one size may stand alone."""
    return tuple(integer(size) for size in shape) if isinstance(shape, (tuple, list)) else (integer(shape),)


def poisoned(shape: Sequence[int], kind: DType) -> np.ndarray[Any, Any]:
    """An array of elements that no kernel means."""
    if kind.is_float:
        return np.full(tuple(shape), np.nan, kind.numpy)
    return np.full(tuple(shape), 1 if kind.is_bool else -1).astype(kind.numpy)


def allocate(shape: Any, kind: Any, space: str) -> Buffer:
    """A buffer that holds nothing yet. Cores that are executed side by side share those of the Cube core's memories."""
    core, element, sizes = current(), dtype(kind), sizes_of(shape)
    launch = core.launch
    site = (core.site(), space)
    number = core.allocated[site] = core.allocated.get(site, 0) + 1
    key = (*site, number)
    if core.kind == "all":
        made = Buffer(poisoned(sizes, element), element, space)
        made.key = key
        return made
    space = launch.roles.get(key, "ub" if space in ("shared", "fragment") else space)
    if space in ("ub", "local"):
        made = Buffer(poisoned(sizes, element), element, space)
    else:
        shared = (core.block, key)
        if shared not in launch.shared:
            launch.shared[shared] = Buffer(poisoned(sizes, element), element, space)
            launch.shared[shared].own = False
        made = launch.shared[shared]
    made.key = key
    return made


def _allocation(name: str, space: str) -> None:
    def call(shape: Any, dtype: Any = "float32", scope: str = "") -> Buffer:
        return allocate(shape, dtype, "l1" if scope == "shared.l1" else space)

    OPERATIONS[name] = call


for _name, _space in (("alloc_shared", "shared"), ("alloc_fragment", "fragment"), ("alloc_ub", "ub"), ("alloc_L1", "l1"),
                      ("alloc_L0A", "l0a"), ("alloc_L0B", "l0b"), ("alloc_L0C", "l0c"), ("alloc_local", "local")):
    _allocation(_name, _space)


def _alloc_var(kind: Any, *arguments: Any, scope: str = "local.var", init: Any = None) -> Variable:
    made = Variable(dtype(kind))
    values = [value for value in arguments if not (isinstance(value, str) and value == "local.var")]
    first = values[0] if values else init
    if first is not None:
        made.store(first)
    return made


OPERATIONS["alloc_var"] = _alloc_var


@tiles("alloc_global")
def alloc_global(shape: Any, dtype: Any, scope: str = "global") -> Buffer:
    """A tensor in GM that the launch makes for itself."""
    core = current()
    return core.launch.own_tensor(core, sizes_of(shape), _element(dtype))


def _element(kind: Any) -> DType:
    return dtype(kind)


@tiles("annotate_address")
def annotate_address(address_map: Mapping[Buffer, int]) -> None:
    """Place buffers at byte addresses of their memories; they may overlap."""
    core = current()
    for buffer, address in address_map.items():
        space = {"shared": "ub", "fragment": "ub"}.get(buffer.space, buffer.space)
        memory = _bytes(core, space, address + buffer.array.nbytes)
        before = buffer.array
        buffer.array = memory[address:address + before.nbytes].view(before.dtype).reshape(before.shape)


def _bytes(core: Core, space: str, size: int) -> np.ndarray[Any, Any]:
    """The bytes of a memory, at least as many; 2 MiB is more than any memory on a chip has."""
    where = core.addressed if space == "ub" or core.kind == "all" else core.launch.shared
    key: Any = space if space == "ub" or core.kind == "all" else (core.block, space)
    if key not in where:
        where[key] = np.full(max(size, 2 << 20), _POISON, np.uint8)
    found: np.ndarray[Any, Any] = where[key]
    return found


@tiles("annotate_layout", "func_attr", "use_swizzle_of_blocks")
def without_effect(*_: Any, **__: Any) -> None:
    """Says nothing of values."""


_C_TYPES = {"half": "float16", "float": "float32", "double": "float64", "bfloat16_t": "bfloat16"}


@tiles("reinterpretcast")
def reinterpretcast(dst: Buffer, src: Buffer, casttype: str) -> None:
    """From here on ``dst`` is the memory of ``src``, whose bits it reads as its own element type."""
    flat = src.array.reshape(-1).view(np.uint8)
    wanted = math.prod(dst.array.shape) * dst.array.dtype.itemsize
    if wanted > flat.size:
        raise fail(f"T.reinterpretcast: {dst.describe()} is longer than {src.describe()}", "give it no more bytes", "T110")
    dst.array = flat[:wanted].view(dst.array.dtype).reshape(dst.array.shape)
    dst.root, dst.own = src.root, src.own


def reshaped(memory: Any, shape: Sequence[int], kind: DType | None = None) -> Buffer:
    """The elements of a dense tile under another shape, their bits as another type."""
    found = memory_of(memory)
    array = found.view()
    element = found.kind if kind is None else kind
    try:
        flat = array.view()
        flat.shape = (array.size,)
    except AttributeError:
        raise fail(f"{found.describe()} has gaps between its rows", "copy it into a buffer of that shape") from None
    bits = flat if element.numpy == flat.dtype else flat.view(element.numpy)
    if bits.size != math.prod(shape):
        raise fail(f"{found.describe()} has not as many elements as {list(shape)}", "give a shape of as many elements")
    return found.buffer.seen(bits.reshape(tuple(shape)), element)


@tiles("view")
def view(src: Any, shape: Any = None, dtype: Any = None) -> Buffer:
    """The buffer under another shape, its bits read as another element type."""
    return reshaped(src, memory_of(src).extents if shape is None else sizes_of(shape), None if dtype is None else _element(dtype))


@tiles("vbitcast", "npuir_bitcast")
def bitcast(src: Any, dtype: Any, size: Any = None) -> Buffer:
    """The same bits as another element type of the same width."""
    from tilelang_npu.interpreter.movement import right_aligned

    found = memory_of(src) if size is None else right_aligned(memory_of(src), sizes_of(size))
    element = _element(dtype)
    return found.buffer.seen(found.view().view(element.numpy), element)


@tiles("reshape", "npuir_reshape")
def reshape(src: Any, shape: Any = None, dst: Any = None) -> Any:
    """``T.reshape(buffer, shape)`` is the buffer under another shape; ``T.reshape(src, dst)`` copies into a buffer of one."""
    other = shape if dst is None else dst
    if not isinstance(other, Memory):
        return reshaped(src, sizes_of(other))
    if current().executes("cube" if other.space in ("l1", "l0c") else "vector"):
        other.view()[...] = memory_of(src).view().reshape(other.extents)
    return None
