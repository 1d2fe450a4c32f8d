"""Factories as members of classes, and as what a pickle holds: the name by which another process finds them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tilelang_npu.errors import TileError, doors
from tilelang_npu.traced.author import user_location

if TYPE_CHECKING:
    from tilelang_npu.runtime.autotune import Tuned
    from tilelang_npu.runtime.draft import Draft
    from tilelang_npu.runtime.factory import Factory
    from tilelang_npu.runtime.kernel import JITKernel

__all__ = ["Method", "bound", "by_name"]


class Method:
    """A factory that was read from an object, or from a class where it is a class method: that is its first argument.

    Attributes:
        of: the factory.
        first: the object.
    """

    def __init__(self, of: Factory[..., Any] | Tuned, first: object) -> None:
        self.of, self.first = of, first

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.of(self.first, *args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """See :meth:`Factory.compile`."""
        return self.of.compile(self.first, *args, **kwargs)

    def draft(self, *args: Any, **kwargs: Any) -> Draft:
        """See :meth:`Factory.draft`."""
        made: Draft = self.of.draft(self.first, *args, **kwargs)  # type: ignore[union-attr]  # a tuned one is asked for none
        return made

    def get_kernel_source(self, *args: Any, **kwargs: Any) -> str:
        """See :meth:`Factory.get_kernel_source`."""
        return self.compile(*args, **kwargs).get_kernel_source()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Method, (self.of, self.first)

    def __repr__(self) -> str:
        return f"<{self.of!r} of {self.first!r}>"


def bound(factory: Factory[..., Any] | Tuned, kind: type, instance: object, owner: type | None
          ) -> Factory[..., Any] | Tuned | Method:
    """What reading a member of a class gives.

    Args:
        factory: the member.
        kind: ``staticmethod``, ``classmethod``, or any other type for a function.
        instance: the object that it is read from; None for its class.
        owner: the class.
    """
    if kind is classmethod:
        return Method(factory, type(instance) if owner is None else owner)
    return factory if kind is staticmethod or instance is None else Method(factory, instance)


def by_name(factory: Factory[..., Any] | Tuned, function: Callable[..., object]) -> tuple[Any, ...] | None:
    """How a pickle names a factory; None where its name is that of the function that it was made from.

    Raises:
        TileError: T733, no other process would find it.
    """
    module, name = function.__module__, function.__qualname__
    named = _of_factory(_at(module, name))
    for suffix, one in (("", named), (_INNER, getattr(named, "factory", None))):
        if one is factory:
            return _named, (module, name + suffix)
    if named is function:
        return None
    for other, value in list(vars(sys.modules.get(module, sys)).items()):
        if value is factory:
            return _named, (module, other)
    where = "in a function" if "<locals>" in name else f"not at {name} of the module {module}"
    raise TileError(f"the factory {name} cannot be pickled: it is {where}, where another process does not find it", code="T733",
                    location=user_location(),
                    help="define it at the top of a module, pickle the kernel that it makes, or use threads, not processes")


_INNER = ".factory"
"""Behind the name of a tuned factory: what is tuned."""


def _of_factory(found: object) -> object:
    return found.of if isinstance(found, Method) else found


def _at(module: str, name: str) -> object:
    """What has that name in a module that is loaded; None where there is nothing."""
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _named(module: str, name: str) -> object:
    """A factory that a pickle names."""
    import_module(module)
    found = _of_factory(_at(module, name.removesuffix(_INNER)))
    if name.endswith(_INNER):
        found = getattr(found, "factory", None)
    if found is None:
        raise TileError(f"a pickle names the factory {name} of the module {module}, which has none here", code="T733",
                        help="load it where that module is the one that it was written with")
    return found


doors(globals())
