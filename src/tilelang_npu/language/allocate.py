"""On-chip buffers and scalar variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, i64

from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.frontend.buffers import Buffer, Memory, Variable
from tilelang_npu.frontend.builder import buffer_type
from tilelang_npu.frontend.scalars import Expr
from tilelang_npu.language import tracing
from tilelang_npu.language.symbols import Sym
from tilelang_npu.language.types import element_type, sizes_of

_SHARED = {"shared": "shared", "shared.dyn": "shared", "shared.l1": "cbuf"}
_FRAGMENT = {"local.fragment": "fragment"}


def alloc_shared(shape: Any, dtype: object, scope: str = "shared.dyn") -> Buffer:
    """A buffer in L1 or UB, as its use decides."""
    return _allocate("T.alloc_shared", shape, dtype, _space("T.alloc_shared", scope, _SHARED))


def alloc_fragment(shape: Any, dtype: object, scope: str = "local.fragment") -> Buffer:
    """A buffer in L0C (the result of a gemm) or UB, as its use decides."""
    return _allocate("T.alloc_fragment", shape, dtype, _space("T.alloc_fragment", scope, _FRAGMENT))


def alloc_ub(shape: Any, dtype: object) -> Buffer:
    """A buffer in UB."""
    return _allocate("T.alloc_ub", shape, dtype, "ub")


def alloc_L1(shape: Any, dtype: object) -> Buffer:
    """A buffer in L1."""
    return _allocate("T.alloc_L1", shape, dtype, "cbuf")


def alloc_L0A(shape: Any, dtype: object) -> Buffer:
    """A buffer in L0A."""
    return _allocate("T.alloc_L0A", shape, dtype, "ca")


def alloc_L0B(shape: Any, dtype: object) -> Buffer:
    """A buffer in L0B."""
    return _allocate("T.alloc_L0B", shape, dtype, "cb")


def alloc_L0C(shape: Any, dtype: object) -> Buffer:
    """A buffer in L0C."""
    return _allocate("T.alloc_L0C", shape, dtype, "cc")


def alloc_local(shape: Any, dtype: object, scope: str = "local") -> Buffer:
    """Scalar storage with several elements."""
    return _allocate("T.alloc_local", shape, dtype, _space("T.alloc_local", scope, {"local": "local"}))


def alloc_var(dtype: object, *arguments: Any, init: Any = None) -> Variable:
    """A scalar that assignments change: ``n = T.alloc_var("int32", init=0)``, then ``n = n + 1``.

    A second positional argument is the initial value, unless it is the scope ``"local.var"``.
    """
    values = [argument for argument in arguments if argument != "local.var"]
    if len(values) > 1 or (values and init is not None):
        raise TileError(f"T.alloc_var takes one initial value, not {len(values) + (init is not None)}", code="T145",
                        help="write T.alloc_var(dtype, init=value)")
    made = _allocate("T.alloc_var", (1,), dtype, "local", Variable)
    assert isinstance(made, Variable)
    first = values[0] if values else init
    if first is not None:
        made.place.store(first)
    return made


def annotate_address(addresses: Mapping[Any, int]) -> None:
    """Fix byte addresses of buffers in their memories; buffers may overlap on purpose.

    Raises:
        TileError: T162, not an allocated buffer or not a byte address.
    """
    tracing.builder("T.annotate_address").require_kernel("T.annotate_address")
    for buffer, address in addresses.items():
        owner = buffer.value.owner if isinstance(buffer, Buffer) else None
        if not isinstance(owner, tile.AllocOp):
            shown = buffer.describe() if isinstance(buffer, Memory) else repr(buffer)
            raise TileError(f"T.annotate_address: {shown} is not a buffer that the kernel allocates", code="T162",
                            help="name buffers that T.alloc_* made in this kernel")
        if isinstance(address, bool) or not isinstance(address, int) or address < 0:
            raise TileError(f"T.annotate_address: {address!r} is not a byte address for {buffer.describe()}", code="T162",
                            help="an address is a number of bytes from 0")
        owner.properties["address"] = IntegerAttr(address, i64)


def _space(what: str, scope: str, known: Mapping[str, str]) -> str:
    if scope not in known:
        raise TileError(f"{what}: there is no scope {scope!r}", code="T160", help="scopes are " + ", ".join(map(repr, known)))
    return known[scope]


def _allocate(what: str, shape: Any, dtype: object, space: str, kind: type[Buffer] = Buffer) -> Buffer:
    builder = tracing.builder(what)
    builder.require_kernel(what)
    if builder.in_parallel:
        raise TileError(f"{what} inside T.Parallel is not supported", code="T160", help="allocate above the loop")
    element = element_type(dtype, what)
    sizes = tuple(_size(what, axis, size) for axis, size in enumerate(sizes_of(shape)))
    if not sizes:
        raise TileError(f"{what}: a buffer has at least one axis", code="T150",
                        help="give it a shape such as (64, 128)")
    op = builder.emit(tile.AllocOp("buffer", buffer_type(element, sizes, space)))
    made = kind("buffer", element, sizes, space, op.results[0], builder.location)
    made.unnamed = True
    return made


def _size(what: str, axis: int, size: Any) -> int:
    if isinstance(size, Expr) and size.constant is not None and not size.kind.is_float:
        size = int(size.constant)
    if isinstance(size, (Sym, tracing.TracedValue)):
        raise TileError(f"{what}: size {size} of axis {axis} is not a constant; on-chip shapes are", code="T111",
                        help="allocate the largest size and work on a slice")
    if isinstance(size, (bool, float, str)) or not hasattr(size, "__index__"):
        raise TileError(f"{what}: size {size!r} of axis {axis} is not an integer", code="T111",
                        help="use // instead of / where both sides are integers")
    if int(size) <= 0:
        raise TileError(f"{what}: size {int(size)} of axis {axis} is not positive", code="T150",
                        help="a size is a positive integer; check the block sizes it is computed from")
    return int(size)
