"""The front end: from the Python source of a kernel to the tile dialect.

``trace`` walks the function's statements, evaluates its expressions in lexical frames and emits one module. Nothing of the IR
framework is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilelang_npu.frontend.trace import Parameter, Traced, trace

__all__ = ["Parameter", "Traced", "trace"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from importlib import import_module

        module = import_module("tilelang_npu.frontend.trace")
        for public in __all__:
            globals()[public] = getattr(module, public)
        return globals()[name]
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
