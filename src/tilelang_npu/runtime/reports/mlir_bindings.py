"""The MLIR project's own Python bindings, from the first installed package that has them.

The bindings do not know HIVM. A module is parsed in the generic form with unregistered dialects allowed, and its attributes of
unknown dialects stay opaque. This is enough to verify the structure, and to walk and transform the module.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tilelang_npu.errors import TileError

_PACKAGES = ("mlir", "iree.compiler", "torch_mlir", "jaxlib.mlir")


def installed_bindings() -> str | None:
    """Returns the package whose ``ir`` module is used: ``mlir``, ``iree.compiler``, ``torch_mlir`` or ``jaxlib.mlir``, or
    None."""
    for package in _PACKAGES:
        try:
            if find_spec(f"{package}.ir") is not None:
                return package
        except ModuleNotFoundError:
            continue
    return None


def parse_module(text: str) -> Any:
    """Returns an ``ir.Module`` parsed from text, in a context of its own.

    Raises:
        TileError: T711 no MLIR bindings are installed.
    """
    package = installed_bindings()
    if package is None:
        msg = "no MLIR Python bindings are installed"
        raise TileError(msg, code="T711", help="pip install 'tilelang-npu[mlir]'; mlir(stage) gives the text without them")
    return import_module(f"{package}.ir").Module.parse(text, new_context(package))


def new_context(package: str) -> Any:
    """Returns a context of one of the packages, with MLIR's own dialects loaded and unregistered dialects allowed."""
    ir = import_module(f"{package}.ir")
    context = ir.Context()
    if package == "jaxlib.mlir":  # the other packages register their dialects at import
        registry = ir.DialectRegistry()
        import_module(f"{package}._mlir_libs._jax_mlir_ext").register_dialects(registry)
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
    context.allow_unregistered_dialects = True
    return context
