"""The front end: from the Python source of a kernel to the tile dialect.

``trace`` walks the function's statements, evaluates its expressions in lexical frames and emits one module. Nothing of the IR
framework is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilelang_npu.frontend.parameters import Parameter
    from tilelang_npu.frontend.tracing import Traced, trace

__all__ = ["Parameter", "Traced", "trace"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from importlib import import_module

        home = "parameters" if name == "Parameter" else "tracing"
        found = globals()[name] = getattr(import_module(f"tilelang_npu.frontend.{home}"), name)
        return found
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
