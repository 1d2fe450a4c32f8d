"""Module attributes that are imported when they are first used, so that importing a package stays fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["deferred"]


def deferred(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Returns the ``__getattr__`` of a package (PEP 562): it imports a name from its module, and stores it in the package.

    No name may be that of a submodule: importing the submodule would store the module under it.

    Args:
        package: the package's ``__name__``.
        homes: by name, the module that defines it, relative to the package: ``{"Program": "run.program"}``.
    """
    def load(name: str) -> object:
        if name not in homes:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        found: object = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return load
