"""Parses a kernel's text with the MLIR project's Python bindings, from the first installed package that contains them.

The bindings do not know the dialect HIVM. Text is therefore parsed in MLIR's generic form with unregistered dialects allowed,
and attributes of unknown dialects stay opaque. This is enough to verify the structure, and to walk and transform the module.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from tilelang_npu.errors import TileError

_PACKAGES = ("mlir", "iree.compiler", "torch_mlir", "jaxlib.mlir")


def installed_bindings() -> str | None:
    """Returns the first installed package with MLIR bindings of ``mlir``, ``iree.compiler``, ``torch_mlir`` and
    ``jaxlib.mlir``.

    None if none of them is installed.
    """
    for package in _PACKAGES:
        try:
            if find_spec(f"{package}.ir") is not None:
                return package
        except ModuleNotFoundError:
            continue
    return None


def parse_module(text: str) -> object:
    """Parses MLIR text in the generic form, and returns it as an ``ir.Module`` in a new MLIR context.

    Raises:
        TileError: T711 no MLIR bindings are installed.
    """
    package = installed_bindings()
    if package is None:
        msg = "no MLIR Python bindings are installed"
        raise TileError(msg, code="T711", help="pip install 'tilelang-npu[mlir]'; mlir(stage) gives the text without them")
    return import_module(f"{package}.ir").Module.parse(text, new_context(package))


def new_context(package: str) -> object:
    """Returns a new MLIR context that accepts operations of any dialect.

    The upstream dialects of MLIR are registered; operations of other dialects, such as HIVM, are accepted unregistered.

    Args:
        package: the package with the MLIR bindings, from :func:`installed_bindings`.
    """
    ir = import_module(f"{package}.ir")
    context = ir.Context()
    if package == "jaxlib.mlir":  # the other packages register their dialects at import
        registry = ir.DialectRegistry()
        import_module(f"{package}._mlir_libs._jax_mlir_ext").register_dialects(registry)
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
    context.allow_unregistered_dialects = True
    return context
