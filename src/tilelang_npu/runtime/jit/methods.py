"""Makes factories work as methods of classes, and pickles them by name.

The pickle of a factory contains the module and the name under which another process finds the factory.
"""

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
    """The interface of a factory: of one under ``jit``, and of a tuned one under ``autotune``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compiles the kernel for these arguments and returns it. A function in eager mode is also run, and its results are
        returned.
        """

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """Returns the compiled kernel for these arguments, without running it."""


class Method:
    """A factory that is bound to an object or, as a class method, to a class; calls pass the object or class as first argument.

    Attributes:
        maker: the factory.
        first: the object or class.
    """

    def __init__(self, maker: KernelMaker, first: object) -> None:
        self.maker, self.first = maker, first

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.maker(self.first, *args, **kwargs)

    def compile(self, *args: object, **kwargs: object) -> JITKernel:
        """Returns the compiled kernel for the bound object and these arguments, see :meth:`Factory.compile`."""
        return self.maker.compile(self.first, *args, **kwargs)

    def draft(self, *args: object, **kwargs: object) -> Draft:
        """Returns the traced kernel for the bound object and these arguments, see :meth:`Factory.draft`."""
        made: Draft = self.maker.draft(self.first, *args, **kwargs)  # type: ignore[attr-defined]  # only called for a Factory
        return made

    def get_kernel_source(self, *args: object, **kwargs: object) -> str:
        """Returns the HIVM text of the kernel for the bound object and these arguments."""
        return self.compile(*args, **kwargs).get_kernel_source()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.maker, name)

    def __reduce__(self) -> tuple[object, ...]:
        return Method, (self.maker, self.first)

    def __repr__(self) -> str:
        return f"<{self.maker!r} of {self.first!r}>"


def bound(maker: KernelMaker, kind: type, instance: object, owner: type | None) -> KernelMaker:
    """Implements ``__get__`` of a factory that is an attribute of a class: returns the factory, bound like a Python method.

    Args:
        maker: the factory.
        kind: ``staticmethod`` or ``classmethod`` if the factory was made from one; any other type for a plain function.
        instance: the object from which the attribute is read; None if it is read from the class.
        owner: the class.

    Returns:
        The factory itself for a static method, and for a function that is read from the class; else a :class:`Method`.
    """
    if kind is classmethod:
        return Method(maker, type(instance) if owner is None else owner)
    return maker if kind is staticmethod or instance is None else Method(maker, instance)


def reference_by_name(maker: KernelMaker, function: Callable[..., object]) -> tuple[object, ...] | None:
    """Implements ``__reduce__`` of a factory: returns a reference by which another process finds the factory by its name.

    Args:
        maker: the factory.
        function: the function from which the factory was made.

    Returns:
        The reference. None if the function's name refers to the function itself, as with ``made = jit(function)``; the factory
        is then pickled with a reference to the function.

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
        raise TileError(f"a pickle refers to the factory {name} of the module {module}, which has no such factory here",
                        code="T733", help=f"load the pickle with the version of {module} that wrote it")
    return found


doors(globals())
