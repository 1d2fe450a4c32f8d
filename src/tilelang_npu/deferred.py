"""Lets a package import its public names when they are first used, so that importing the package itself stays fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["deferred"]


def deferred(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Returns a function to assign to a package's ``__getattr__`` (PEP 562), which imports the package's names on first use.

    The function imports the module that defines the requested name, stores the name's value in the package and returns it. It
    raises an :class:`AttributeError` for names that are not in ``homes``.

    A name must not equal the name of a submodule of the package: importing the submodule would store the module under the name.

    Args:
        package: the package's ``__name__``.
        homes: for each name, the module that defines it, relative to the package: ``{"Program": "run.program"}``.
    """
    def load(name: str) -> object:
        if name not in homes:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        found: object = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return load
