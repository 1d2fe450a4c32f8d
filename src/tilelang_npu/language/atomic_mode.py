"""``T.set_atomic``, ``T.set_atomic_add`` and ``T.set_atomic_none``: how later copies combine with a global tensor.

The mode is a register of the core. The trace writes it on each copy to a global tensor, so that no later pass has to keep the
order of the copies and of the statements that set the mode. The mode must therefore be known for each copy: it is set and reset
in the same loop or branch.
"""

from __future__ import annotations

from tilelang_npu.errors import TileError
from tilelang_npu.language.elements import ElementType, element_type
from tilelang_npu.ops import DType
from tilelang_npu.traced.builder import AtomicMode, Builder

__all__ = ["UPDATES", "require_updatable", "set_atomic", "set_atomic_add", "set_atomic_none"]

UPDATES = {"add": "addition", "max": "maximum", "min": "minimum"}
"""The kinds of atomic updates, with their names in messages."""
_UPDATABLE = ("float32", "float16", "bfloat16", "int8", "int16", "int32")
"""The element types that the chips update atomically in a global tensor."""
_KINDS = ("add", "max", "min", "none")


def set_atomic(kind: str, dtype: ElementType = "float32") -> None:
    """Make later copies from UB or L0C to a global tensor update it atomically, instead of replacing its elements.

    ``T.copy``, ``T.store_fixpipe`` and ``T.gemm_v0_fixp`` are such copies. With ``add`` an element becomes the sum of the old
    and the copied one, with ``max`` and ``min`` the larger or the smaller of the two, with ``none`` the copied one. Stores of
    single elements are not affected. ``T.atomic_add`` does the same for one copy.

    Example: ``T.set_atomic("max", "float32")``

    Args:
        kind: ``add``, ``max``, ``min`` or ``none``.
        dtype: the element type of the copies.

    Raises:
        TileError: T110, there is no atomic update of the element type, or a later copy has another one; T145, there is no such
            kind; T190, the mode is not reset in the same loop or branch.
    """
    _set("T.set_atomic", kind, dtype)


def set_atomic_add(dtype: ElementType = "float32") -> None:
    """Make later copies to a global tensor add to it atomically: ``T.set_atomic("add", dtype)``.

    Example: ``T.set_atomic_add("float32")``

    Raises:
        TileError: as ``T.set_atomic``.
    """
    _set("T.set_atomic_add", "add", dtype)


def set_atomic_none(dtype: ElementType = "float32") -> None:
    """Make later copies to a global tensor replace its elements again: ``T.set_atomic("none")``.

    Example: ``T.set_atomic_none()``

    Raises:
        TileError: as ``T.set_atomic``.
    """
    _set("T.set_atomic_none", "none", dtype)


def require_updatable(what: str, kind: str, element: DType) -> None:
    """Checks that the chips update elements of a type atomically.

    Args:
        what: the name of the call, for messages.
        kind: the operation: one of :data:`UPDATES`.
        element: the element type.

    Raises:
        TileError: T110, they do not.
    """
    if element not in _UPDATABLE:
        raise TileError(f"{what}: no atomic {UPDATES.get(kind, 'update')} of {element}", code="T110",
                        help="it works on " + ", ".join(_UPDATABLE))


def _set(what: str, kind: object, dtype: object) -> None:
    builder = Builder.running(what)
    builder.require_kernel(what)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise TileError(f"{what}: there is no atomic mode {kind!r}", code="T145", help="the modes are " + ", ".join(_KINDS))
    element = element_type(dtype, what)
    require_updatable(what, kind, element)
    old = builder.atomic
    if old is not None and old.path != builder.path:
        raise TileError(f"{what}: the mode was set in another loop or branch", code="T190", location=builder.location,
                        help="set and reset the mode in the same loop or branch")
    builder.atomic = None if kind == "none" else AtomicMode(kind, element, builder.path, builder.location)
