"""The functions of ``T`` that allocate buffers on chip, scalar variables and global tensors, or change allocations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any, SupportsIndex

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language.eager import empty, is_declaring
from tilelang_npu.language.elements import TOKENS, ElementType, Extents, element_type, sizes_of
from tilelang_npu.language.layouts import BufferLayout, Layout
from tilelang_npu.language.operands import bits_of, element_count
from tilelang_npu.target import BLOCK
from tilelang_npu.target.chip_data import BufferSpace
from tilelang_npu.traced.active_trace import TracedValue, active
from tilelang_npu.traced.buffers import Addressable, Buffer, Variable
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.ir_types import buffer_type
from tilelang_npu.traced.locations import location_attribute
from tilelang_npu.traced.scalars import Expr
from tilelang_npu.traced.symbols import Number, Sym

_SHARED: dict[str, BufferSpace] = {"shared": "shared", "shared.dyn": "shared", "shared.l1": "cbuf"}
_FRAGMENT: dict[str, BufferSpace] = {"local.fragment": "fragment", "local": "fragment"}


def alloc_shared(shape: Extents, dtype: ElementType, scope: str = "shared.dyn") -> Buffer:
    """Allocate a buffer in L1 or UB; the compiler chooses the memory by the buffer's uses.

    Operands of ``T.gemm`` are placed in L1, operands of vector operations in UB. The contents are undefined until written.

    Example: ``T.alloc_shared((128, 64), "float16")``

    Args:
        shape: the sizes, which must be constants. Operations on a buffer with a size of 0 have no effect (T115).
        dtype: the element type.
        scope: ``"shared.dyn"`` or ``"shared"``; ``"shared.l1"`` places the buffer in L1.

    Raises:
        TileError: T111, a size is not a constant integer; T150, a size is negative; T160, there is no such scope, or the
            call is inside ``T.Parallel``; T110, there is no such element type.
    """
    return allocate_buffer("T.alloc_shared", shape, dtype, _space("T.alloc_shared", scope, _SHARED))


def alloc_fragment(shape: Extents, dtype: ElementType, scope: str = "local.fragment") -> Buffer:
    """Allocate a buffer in L0C or UB; the compiler chooses the memory by the buffer's uses.

    The accumulator of ``T.gemm`` is placed in L0C, operands of vector operations in UB. The contents are undefined until
    written. The sizes in ``shape`` must be constants, and not negative; ``scope`` must be ``"local.fragment"`` or ``"local"``.

    Example: ``T.alloc_fragment((128, 128), "float32")``

    Raises:
        TileError: as ``T.alloc_shared``.
    """
    return allocate_buffer("T.alloc_fragment", shape, dtype, _space("T.alloc_fragment", scope, _FRAGMENT))


def alloc_frag(shape: Extents, dtype: ElementType, scope: str = "local.fragment") -> Buffer:
    """Allocate a fragment of a vector function (``T.SimdVF``): another name of ``T.alloc_fragment``.

    Operations on tiles keep their operands in UB, fragments included.

    Example: ``T.alloc_frag((64,), "float32")``

    Raises:
        TileError: as ``T.alloc_shared``.
    """
    return allocate_buffer("T.alloc_frag", shape, dtype, _space("T.alloc_frag", scope, _FRAGMENT))


def alloc_ub(shape: Extents, dtype: ElementType) -> Buffer:
    """Allocate a buffer in UB, the memory of a Vector core.

    The sizes in ``shape`` must be constants, and not negative. The contents are undefined until written.

    Example: ``T.alloc_ub((8, 1024), "float32")``

    Raises:
        TileError: as ``T.alloc_shared``.
    """
    return allocate_buffer("T.alloc_ub", shape, dtype, "ub")


def alloc_L1(shape: Extents, dtype: ElementType) -> Buffer:
    """Allocate a buffer in L1, where ``T.gemm`` reads its operands.

    The sizes in ``shape`` must be constants, and not negative. The contents are undefined until written.

    Example: ``T.alloc_L1((128, 256), "float16")``

    Raises:
        TileError: as ``T.alloc_shared``.
    """
    return allocate_buffer("T.alloc_L1", shape, dtype, "cbuf")


def alloc_L0A(shape: Extents, dtype: ElementType) -> Buffer:
    """Allocate a buffer in L0A, for the left operand (m, k) of ``T.mma``.

    Example: ``T.alloc_L0A((128, 64), "float16")``

    Raises:
        TileError: as ``T.alloc_shared``.
    """
    return allocate_buffer("T.alloc_L0A", shape, dtype, "ca")


def alloc_L0B(shape: Extents, dtype: ElementType) -> Buffer:
    """Allocate a buffer in L0B, for the right operand (k, n) of ``T.mma``.

    Example: ``T.alloc_L0B((64, 128), "float16")``

    Raises:
        TileError: as ``T.alloc_shared``.
    """
    return allocate_buffer("T.alloc_L0B", shape, dtype, "cb")


def alloc_L0C(shape: Extents, dtype: ElementType) -> Buffer:
    """Allocate a buffer in L0C, for the accumulator (m, n) of ``T.gemm`` and ``T.mma``.

    The element type must be float32, or int32 for int8 operands.

    Example: ``T.alloc_L0C((128, 128), "float32")``

    Raises:
        TileError: as ``T.alloc_shared``.
    """
    return allocate_buffer("T.alloc_L0C", shape, dtype, "cc")


def alloc_local(shape: Extents, dtype: ElementType, scope: str = "local") -> Buffer:
    """Allocate scalar storage with several elements, which the kernel reads and assigns one by one: ``counts[0] = 1``.

    If a vector operation uses the buffer as a whole, as in ``T.reduce_sum(values, total)``, it is placed in UB. In the body of
    ``T.Parallel`` each point has elements of its own, which must be assigned before they are read. If a condition decides
    whether an element is assigned, or an index is no constant, the points are computed one after another.

    Example: ``T.alloc_local((4,), "int32")``

    Raises:
        TileError: as ``T.alloc_shared``.
    """
    return allocate_buffer("T.alloc_local", shape, dtype, _space("T.alloc_local", scope, {"local": "local"}))


def alloc_var(dtype: ElementType, *arguments: Number | str, scope: str = "local.var", init: Number | None = None
              ) -> Any:  # its value in the kernel
    """Allocate a scalar variable: ``n = T.alloc_var("int32", init=0)``. A later assignment ``n = n + 1`` changes its value.

    In the body of ``T.Parallel`` each point has a variable of its own. Its value must be set before it is read. If a condition
    decides whether it is set, the points of the loop are computed one after another.

    Example: ``T.alloc_var("int32", init=0)``

    Args:
        dtype: the element type.
        arguments: the initial value as a positional argument; the string ``"local.var"`` is accepted as the scope.
        scope: must be ``"local.var"``.
        init: the initial value; without it, the value is undefined until assigned.

    Raises:
        TileError: T145, there are several initial values; T160, there is no such scope, or a point of ``T.Parallel`` reads the
            variable before it has set it.
    """
    _space("T.alloc_var", scope, {"local.var": "local"})
    values = [argument for argument in arguments if argument != "local.var"]
    if len(values) > 1 or (values and init is not None):
        raise TileError(f"T.alloc_var takes one initial value, not {len(values) + (init is not None)}", code="T145",
                        help="write T.alloc_var(dtype, init=value)")
    made = allocate_buffer("T.alloc_var", (1,), dtype, "local", Variable)
    assert isinstance(made, Variable)
    first = values[0] if values else init
    if first is not None:
        made.place.store(first)
    return made


def alloc_global(shape: Extents, dtype: ElementType, scope: str = "global") -> Any:  # in a kernel a buffer
    """Allocate a temporary tensor in GM, which exists during a call of the kernel. The statement must be above ``with
    T.Kernel``.

    All blocks share the tensor, and a later ``T.Kernel`` of the same function can read the elements that an earlier one has
    written.

    Example: ``T.alloc_global((M, N), "float32")``

    Args:
        shape: the sizes: integers, or expressions of symbolic dimensions of the kernel's parameters.
        dtype: the element type.
        scope: must be ``"global"``.

    Raises:
        TileError: T160, the call is inside ``T.Kernel``, a loop or a branch; T111, a size is computed on the device; T140,
            T150, T151, as for the shape of a parameter.
    """
    what = "T.alloc_global"
    _space(what, scope, {"global": "gm"})
    if active() is None and is_declaring():
        return empty(sizes_of(shape), dtype)
    builder = Builder.running(what)
    if builder.in_kernel or builder.block is not builder.entry:
        raise TileError(f"{what} is inside T.Kernel, a loop or a branch", code="T160",
                        help="move the statement above `with T.Kernel(...)`; all blocks share the tensor")
    sizes = []
    for axis, size in enumerate(sizes_of(shape)):
        known = size.constant if isinstance(size, Expr) and size.constant is not None else size
        known = known.symbol if isinstance(known, Expr) and known.symbol is not None else known
        if isinstance(known, TracedValue):
            raise TileError(f"{what}: size {size} of axis {axis} is computed on the device", code="T111",
                            help="use constants and symbolic dimensions of the kernel's parameters")
        sizes.append(known)
    return builder.own_tensor(sizes, element_type(dtype, what))


def annotate_address(address_map: Mapping[Buffer, int]) -> None:
    """Place buffers at fixed byte addresses of their memories. Buffers can overlap.

    Example: ``T.annotate_address({a: 0, b: 32768})``

    Args:
        address_map: for each buffer, its address in bytes from the start of its memory, which must be a multiple of 32.

    Raises:
        TileError: T162, a key is not a buffer that the kernel allocates, or a value is not such an address.
    """
    Builder.running("T.annotate_address").require_kernel("T.annotate_address")
    for buffer, address in address_map.items():
        owner = buffer.value.owner if isinstance(buffer, Buffer) else None
        if not isinstance(owner, tile.AllocOp):
            shown = buffer.describe() if isinstance(buffer, Addressable) else repr(buffer)
            raise TileError(f"T.annotate_address: {shown} is not a buffer that the kernel allocates", code="T162",
                            help="name buffers that T.alloc_* has allocated in this kernel")
        if isinstance(address, bool) or not isinstance(address, int) or address < 0:
            raise TileError(f"T.annotate_address: {address!r} is not a byte address for {buffer.describe()}", code="T162",
                            help="an address must be a number of bytes, from 0 on")
        if address % BLOCK:
            low = address // BLOCK * BLOCK
            raise TileError(f"T.annotate_address: {address}, for {buffer.describe()}, is not a multiple of {BLOCK} bytes",
                            code="T162", help=f"addresses must be multiples of {BLOCK} bytes: use {low} or {low + BLOCK}")
        owner.properties["address"] = IntegerAttr(address, i64)


def annotate_layout(layout_map: Mapping[Buffer, BufferLayout | Layout]) -> None:
    """State the layout of buffers in L1 and L0, which has no effect.

    The compiler always gives a buffer the layout that a load into the buffer produces and that its readers expect. The layout
    ``tilelang.layout.make_swizzled_layout``, for the shared memory of a GPU, is also accepted, and so are the layouts
    ``T.Layout`` and ``T.Fragment`` of a GPU. The elements of a global tensor stay in row-major order.

    Example: ``T.annotate_layout({a: make_zn_layout(a)})``

    Raises:
        TileError: T163, a key is not a buffer that the kernel allocates, or a value is not a layout of that buffer.
    """
    builder = Builder.running("T.annotate_layout")
    builder.require_kernel("T.annotate_layout")
    given: Iterable[tuple[object, object]] = layout_map.items()
    for buffer, layout in given:
        shown = buffer.describe() if isinstance(buffer, Addressable) else repr(buffer)
        if isinstance(buffer, Buffer) and isinstance(layout, Layout):
            kept = ", whose elements stay in row-major order" if buffer.space == "gm" else ""
            builder.ignore(f"T.annotate_layout of {buffer.name}{kept}")
            continue
        if not (isinstance(buffer, Buffer) and isinstance(buffer.value.owner, tile.AllocOp)):
            raise TileError(f"T.annotate_layout: {shown} is not a buffer that the kernel allocates", code="T163",
                            help="name buffers that T.alloc_* made in this kernel")
        if not isinstance(layout, BufferLayout) or layout.buffer is not buffer:
            raise TileError(f"T.annotate_layout: {layout!r} is not a layout of {shown}", code="T163",
                            help=f"write make_zn_layout({buffer.label}), make_nz_layout or make_col_major_layout")


def reinterpretcast(dst: Buffer, src: Buffer, casttype: str) -> None:
    """Make ``dst`` a view of the memory of ``src`` from this statement on, which reads the bits as the element type of ``dst``.

    Example: ``T.reinterpretcast(a, b, "int32_t")``

    Args:
        dst: a buffer that the kernel has allocated and not used yet, with at most as many bytes as ``src``. The memory that was
            allocated for ``dst`` is released. If ``dst`` has one axis and more bytes, it keeps the elements that fit into
            ``src``, with a warning (T113). The same call can be repeated, and then has no effect.
        src: a buffer that the kernel has allocated.
        casttype: the element type of ``dst``, spelled as in C (``uint32_t``, ``float``) or as in ``T``.

    Raises:
        TileError: T110, ``casttype`` is not the element type of ``dst``, or ``dst`` has several axes and more bytes than
            ``src``; T164, an operand is not a buffer that the kernel allocates, or ``dst`` has been used.
    """
    what = "T.reinterpretcast"
    builder = Builder.running(what)
    builder.require_kernel(what)
    given: tuple[object, object] = (dst, src)
    for buffer in given:
        if not (isinstance(buffer, Buffer) and buffer.space not in ("gm", "local")):
            shown = buffer.describe() if isinstance(buffer, Addressable) else repr(buffer)
            raise TileError(f"{what}: {shown} is not a buffer that the kernel allocates", code="T164",
                            help="name whole buffers that T.alloc_* made in this kernel")
    named = element_type(_C_TYPES.get(casttype, casttype), what)
    if named != dst.dtype:
        raise TileError(f"{what}: {dst.describe()} has no elements of {casttype}", code="T110",
                        help=f"name the element type of the destination: {dst.dtype}")
    if dst.reinterpreted is src:
        return
    have, wanted = _bytes_of(src), _bytes_of(dst)
    fitting = have // dst.dtype.nbytes
    if wanted > have and (dst.ndim > 1 or not fitting):
        raise TileError(f"{what}: {src.describe()} has {have} bytes, and {dst.describe()} has {wanted}", code="T110",
                        help="allocate a destination that has at most as many bytes as the source")
    old = dst.value.owner
    if not isinstance(old, tile.AllocOp) or old.result.uses.get_length() or dst.space != src.space:
        raise TileError(f"{what}: {dst.name} is in use already", code="T164",
                        help=f"call {what} once, before any statement reads or writes {dst.name}")
    if wanted > have:
        builder.remark(TileError(
            f"{what}: {src.describe()} has {have} bytes, and {dst.describe()} has {wanted}; {dst.name} keeps its first "
            f"{fitting} elements", code="T113", location=builder.location,
            help=f"allocate {dst.name} with {fitting} elements; the hardware would access the memory after {src.name}"))
        dst.dimensions, wanted = (fitting,), fitting * dst.dtype.nbytes
    origin = src.value.owner
    assert isinstance(origin, Operation)
    inserted = [origin]

    def insert(op: Operation) -> Operation:
        op.location = location_attribute(builder.location)
        Rewriter().insert_op(op, InsertPoint.after(inserted[-1]))
        inserted.append(op)
        return op

    shape = [size for size in dst.shape if isinstance(size, int)]
    if dst.dtype.nbytes == src.dtype.nbytes and wanted == have:
        seen: SSAValue = insert(tile.ViewOp(src.value, buffer_type(dst.dtype, tuple(shape), src.space))).results[0]
    else:
        seen = bits_of(insert, src.value, dst.dtype, shape)
    seen.name_hint = old.result.name_hint
    dst.value, dst.reinterpreted = seen, src
    Rewriter.erase_op(old)


def _bytes_of(buffer: Buffer) -> int:
    count = element_count(buffer)
    assert count is not None, "on-chip buffers have constant sizes"
    return count * buffer.dtype.nbytes


_C_TYPES = {"half": "float16", "float": "float32", "double": "float64", "bfloat16_t": "bfloat16",
            **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}}


def _space(what: str, scope: str, known: Mapping[str, BufferSpace]) -> BufferSpace:
    if scope in TOKENS:
        raise TileError(f"{what}: the third argument {scope!r} is not a scope", code="T160",
                        help=f"pass the sizes as one tuple: {what}((rows, columns), {scope!r})")
    if scope not in known:
        raise TileError(f"{what}: there is no scope {scope!r}", code="T160", help="scopes are " + ", ".join(map(repr, known)))
    return known[scope]


def allocate_buffer(what: str, shape: object, dtype: object, space: BufferSpace, kind: type[Buffer] = Buffer) -> Buffer:
    """Emits the allocation of a buffer on chip, and returns the buffer.

    Args:
        what: the name of the call, for messages.
        shape: the sizes, as the kernel's author gives them.
        dtype: the element type, as the kernel's author gives it.
        space: the memory.
        kind: the class of the buffer.

    Raises:
        TileError: as ``T.alloc_shared``.
    """
    builder = Builder.running(what)
    builder.require_kernel(what)
    around = builder.around_parallel
    if around is not None and space != "local":
        raise TileError(f"{what} inside T.Parallel is not supported", code="T160", help="allocate above the loop")
    element = element_type(dtype, what)
    sizes = tuple(_size(what, axis, size) for axis, size in enumerate(sizes_of(shape)))
    if not sizes:
        raise TileError(f"{what}: a buffer must have at least one axis", code="T150",
                        help="pass a shape such as (64, 128)")
    with builder.at(around) if around is not None else nullcontext():
        op = builder.emit(tile.AllocOp("buffer", buffer_type(element, sizes, space)))
    if 0 in sizes:
        shown = ", ".join(map(str, sizes))
        builder.remark(TileError(
            f"{what}: a buffer of shape [{shown}] has no elements, and operations on it have no effect", code="T115",
            location=builder.location, help="check the sizes that the shape is computed from"))
    made = kind("buffer", element, sizes, space, op.results[0], builder.location)
    made.unnamed = True
    return made


def _size(what: str, axis: int, size: object) -> int:
    if isinstance(size, Expr) and size.constant is not None and not size.kind.is_float:
        size = int(size.constant)
    if isinstance(size, (Sym, TracedValue)):
        shown = "" if str(size) == "index" else f" {size}"
        raise TileError(f"{what}: size{shown} of axis {axis} is not a constant; on-chip shapes must be constant", code="T111",
                        help="allocate the largest size and work on a slice")
    if isinstance(size, (bool, float)) or not isinstance(size, SupportsIndex):
        raise TileError(f"{what}: size {size!r} of axis {axis} is not an integer", code="T111",
                        help="use // instead of / where both sides are integers")
    number = int(size)
    if number < 0:
        raise TileError(f"{what}: size {number} of axis {axis} is negative", code="T150",
                        help="check the block sizes that the size is computed from")
    return number
