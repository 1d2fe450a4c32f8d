"""Factories as methods of classes, and in pickles: a pickle contains the name under which another process finds the factory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from tilelang_npu.errors import TileError, doors
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.runtime.kernel.draft import Draft

_TUNED_FACTORY = ".factory"
"""Suffix of the name of a tuned factory (``Tuned``), for the factory that it tunes."""


class KernelMaker(Protocol):
    """A factory under ``jit``, or a tuned one under ``autotune``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the kernel, or the results of an eager function."""

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """Returns the kernel."""


class Method:
    """A factory that was read from an object, or as a class method from a class, which becomes its first argument.

    Attributes:
        maker: the factory.
        first: the object or class.
    """

    def __init__(self, maker: KernelMaker, first: object) -> None:
        self.maker, self.first = maker, first

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.maker(self.first, *args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """See :meth:`Factory.compile`."""
        return self.maker.compile(self.first, *args, **kwargs)

    def draft(self, *args: Any, **kwargs: Any) -> Draft:
        """See :meth:`Factory.draft`."""
        made: Draft = self.maker.draft(self.first, *args, **kwargs)  # type: ignore[attr-defined]  # only called for a Factory
        return made

    def get_kernel_source(self, *args: Any, **kwargs: Any) -> str:
        """See :meth:`Factory.get_kernel_source`."""
        return self.compile(*args, **kwargs).get_kernel_source()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.maker, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Method, (self.maker, self.first)

    def __repr__(self) -> str:
        return f"<{self.maker!r} of {self.first!r}>"


def bound(maker: KernelMaker, kind: type, instance: object, owner: type | None) -> KernelMaker:
    """Returns what reading a factory from a class or an object gives, as ``__get__`` does.

    Args:
        maker: the factory.
        kind: ``staticmethod``, ``classmethod``, or any other type for a function.
        instance: the object that it is read from; None for its class.
        owner: the class.
    """
    if kind is classmethod:
        return Method(maker, type(instance) if owner is None else owner)
    return maker if kind is staticmethod or instance is None else Method(maker, instance)


def reference_by_name(maker: KernelMaker, function: Callable[..., object]) -> tuple[Any, ...] | None:
    """Returns the reference that a pickle contains for a factory, as ``__reduce__`` does; None if the factory's name still
    refers to the function that it was made from.

    Raises:
        TileError: T733, another process would not find the factory.
    """
    module, name = function.__module__, function.__qualname__
    named = _maker_of(_value_of(module, name))
    for suffix, one in (("", named), (_TUNED_FACTORY, getattr(named, "factory", None))):
        if one is maker:
            return _find, (module, name + suffix)
    if named is function:
        return None
    for other, value in list(vars(sys.modules.get(module, sys)).items()):
        if value is maker:
            return _find, (module, other)
    where = "in a function" if "<locals>" in name else f"not at {name} of the module {module}"
    raise TileError(f"the factory {name} cannot be pickled: it is {where}, where another process does not find it", code="T733",
                    location=user_location(),
                    help="define it at the top of a module, pickle the kernel that it makes, or use threads, not processes")


def _maker_of(found: object) -> object:
    return found.maker if isinstance(found, Method) else found


def _value_of(module: str, name: str) -> object:
    """Returns the value of a qualified name in a loaded module; None if there is none."""
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _find(module: str, name: str) -> object:
    """Returns the factory that a pickle names.

    Raises:
        TileError: T733, the module has no such factory.
    """
    import_module(module)
    found = _maker_of(_value_of(module, name.removesuffix(_TUNED_FACTORY)))
    if name.endswith(_TUNED_FACTORY):
        found = getattr(found, "factory", None)
    if found is None:
        raise TileError(f"a pickle names the factory {name} of the module {module}, which has none here", code="T733",
                        help="load it where that module is the one that it was written with")
    return found


doors(globals())
