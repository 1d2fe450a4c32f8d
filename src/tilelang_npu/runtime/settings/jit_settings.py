"""The arguments of ``jit`` and ``compile``.

Decorating a function only stores them. The environment, the chip and the dialect are looked up when a kernel is compiled.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.argument_location import location_of_word
from tilelang_npu.runtime.settings.targets import dialect_of, select_chip

if TYPE_CHECKING:
    from pathlib import Path

    from tilelang_npu.target import Chip

Indices = int | Sequence[int] | None
"""The type of ``out_idx`` and ``workspace_idx``: positions of parameters."""
PassConfigs = Mapping[Any, object] | None  # keys are PassConfigKey or str; Mapping is invariant in its keys
"""The type of ``pass_configs``: values of compiler switches by :class:`PassConfigKey` or string key."""

_BACKENDS = ("auto", "cython", "ctypes", "dlpack", "torch", "tvm_ffi", "simulator")
_WITHOUT_EFFECT = ("target_host", "execution_backend", "compile_flags")
"""Arguments that existing scripts pass, and that change nothing."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The arguments of ``jit`` and ``compile``.

    Attributes:
        out_idx: positions of the parameters that a call allocates and returns; a negative position counts from the end.
        workspace_idx: positions of the parameters that a call allocates and does not return.
        target: the dialect of TileLang, see :mod:`tilelang_npu.runtime.settings.targets`.
        platform: the chip family, used if ``chip`` is None.
        chip: the chip to compile for: its name, the path of a TOML or Python file, or a ``Chip`` object.
        pass_configs: the values of compiler switches, by :class:`PassConfigKey` or string key.
        verbose: whether to log the compilation.
        debug_root_path: the directory to which the first and the last stage of the kernel are written; None for none.
        sanitize: whether to look for races, broken flag protocols and results of uninitialised memory after every run, and to
            raise a :class:`SanitizerError` if there are any; None: only if ``TILELANG_NPU_SANITIZE`` is set.
        interpret: whether to execute the kernel in the interpreter instead of compiling it; None: only if
            ``TILELANG_NPU_INTERPRET`` is set.
        at: the source location of the ``jit`` or ``compile``.
    """

    out_idx: Indices = None
    workspace_idx: Indices = None
    target: object = "auto"
    platform: object = "auto"
    chip: str | Path | Chip | None = None
    pass_configs: PassConfigs = None
    verbose: bool = False
    debug_root_path: str | Path | None = None
    sanitize: bool | None = None
    interpret: bool | None = None
    at: Location | None = None

    def key(self) -> tuple[object, ...]:
        """Returns a hashable key: kernels that one factory makes from the same arguments differ only if their keys differ.

        The key contains the dialect, the chip, the switches, and the environment variables that change the compiled kernel.
        """
        switches = sorted(repr(item) for item in self.pass_configs.items()) if isinstance(self.pass_configs, Mapping) else ()
        chip = select_chip(self.chip, self.platform, self.at)
        return (
            dialect_of(self.target, self.at),
            chip.name if not chip.file else repr(chip),  # a file can change between two calls
            tuple(switches),
            environment.MODE.text(),
            environment.WITHOUT.text(),
            environment.AS.text(),
            self.is_interpreted(),
        )

    def is_interpreted(self) -> bool:
        """Whether the kernel runs in the interpreter: ``interpret``, or ``TILELANG_NPU_INTERPRET`` if ``interpret`` is None."""
        return environment.INTERPRET.is_on() if self.interpret is None else self.interpret


class MadeBy(NamedTuple):
    """The call of a factory function, or of an eager function, that made a kernel's ``prim_func``.

    Attributes:
        function: the function.
        args: the positional arguments of the call.
        kwargs: the named arguments of the call. For an eager function, all arguments of the call by name, with the shapes and
            element types of the arrays in place of the arrays.
        at: the line of the call; None if it is not known.
        sizes: the sizes of ``T.const`` in an eager function, by name.
        eager: for an eager function, makes the ``prim_func`` from all arguments by name and the sizes; None for a factory.
    """

    function: Callable[..., object]
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    at: Location | None = None
    sizes: Mapping[str, int] = MappingProxyType({})
    eager: Callable[[Mapping[str, object], Mapping[str, int]], object] | None = None

    def arguments(self, *, defaults: bool = True) -> dict[str, object]:
        """Returns the arguments of the call by the names of the parameters.

        Args:
            defaults: whether the defaults of parameters are included to which the call passes no argument.

        Raises:
            TypeError, ValueError: the function has no signature with these arguments.
        """
        bound = inspect.signature(self.function).bind_partial(*self.args, **self.kwargs)
        if defaults:
            bound.apply_defaults()
        return dict(bound.arguments)

    def prim_func(self, replaced: Mapping[str, object]) -> object:
        """Calls the function again, with other values for some of its parameters, and returns what it makes.

        Args:
            replaced: the values by the names of the parameters.

        Raises:
            Exception: any exception of the function.
        """
        arguments = {**self.arguments(), **replaced}
        return self.function(**arguments) if self.eager is None else self.eager(arguments, self.sizes)


def read_settings(caller: str, given: Mapping[str, Any], at: Location | None) -> Settings:
    """Checks the keyword arguments of ``jit`` or ``compile``, and returns them as settings.

    Args:
        caller: ``jit`` or ``compile``, for messages.
        given: the keyword arguments.
        at: the source location of the call.

    Raises:
        TileError: T707 an unknown argument, an unknown ``execution_backend``, or a switch that is neither True nor False.
    """
    fields = [name for name in Settings.__dataclass_fields__ if name != "at"]
    for name in given:
        if name not in fields and name not in _WITHOUT_EFFECT:
            from difflib import get_close_matches

            near = get_close_matches(name, [*fields, *_WITHOUT_EFFECT], n=1)
            msg = f"{caller} has no argument {name!r}"
            raise TileError(msg, code="T707", location=location_of_word(name, at),
                            help=f"did you mean {near[0]!r}?" if near else f"its arguments are {', '.join(fields)}")
    backend = given.get("execution_backend", "auto")
    if backend is not None and backend not in _BACKENDS:
        msg = f"unknown execution_backend {backend!r}"
        raise TileError(msg, code="T707", location=location_of_word("execution_backend", at),
                        help=f"execution_backend must be one of {', '.join(_BACKENDS)}")
    for name in ("sanitize", "interpret"):
        if given.get(name) not in (None, True, False):
            msg = f"{name} is {given[name]!r}, neither True nor False"
            raise TileError(msg, code="T707", location=location_of_word(name, at), help=f"write {name}=True")
    return replace(Settings(at=at), **{name: value for name, value in given.items() if name in fields})
