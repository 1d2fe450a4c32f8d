"""The MLIR project's own Python bindings, from whichever distribution of them is installed.

They know nothing of HIVM: a module goes through them in the generic form with unregistered dialects allowed, and its
attributes of unknown dialects stay opaque. That is enough to parse, verify the structure, walk and transform it.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tilelang_npu.errors import TileError

__all__ = ["bindings", "live_module", "new_context"]

_HOMES = ("mlir", "iree.compiler", "torch_mlir", "jaxlib.mlir")


def bindings() -> str | None:
    """The package whose ``ir`` module is used: ``mlir``, ``iree.compiler``, ``torch_mlir`` or ``jaxlib.mlir``, or None."""
    for home in _HOMES:
        try:
            if find_spec(f"{home}.ir") is not None:
                return home
        except ModuleNotFoundError:
            continue
    return None


def live_module(text: str) -> Any:
    """An ``ir.Module`` parsed from text, in a context of its own.

    Raises:
        TileError: T711 no MLIR bindings are installed.
    """
    home = bindings()
    if home is None:
        msg = "no MLIR Python bindings are installed"
        raise TileError(msg, code="T711", help="pip install 'tilelang-npu[mlir]'; mlir(stage) gives the text without them")
    return import_module(f"{home}.ir").Module.parse(text, new_context(home))


def new_context(home: str) -> Any:
    """A context of one of the distributions that knows MLIR's own dialects and takes others in the generic form."""
    ir = import_module(f"{home}.ir")
    context = ir.Context()
    if home == "jaxlib.mlir":  # the other distributions register theirs by themselves
        registry = ir.DialectRegistry()
        import_module(f"{home}._mlir_libs._jax_mlir_ext").register_dialects(registry)
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
    context.allow_unregistered_dialects = True
    return context
