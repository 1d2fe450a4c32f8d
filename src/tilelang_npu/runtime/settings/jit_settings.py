"""The settings of ``jit`` and ``compile``.

They are only stored when a kernel is decorated. The environment, the chip and the dialect are read when a kernel is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.argument_location import location_of_word
from tilelang_npu.runtime.settings.targets import dialect_of, select_chip

if TYPE_CHECKING:
    from pathlib import Path

    from tilelang_npu.target import Chip

Indices = int | Sequence[int] | None
PassConfigs = Mapping[Any, object] | None  # keys are PassConfigKey or str; Mapping is invariant in its keys

_BACKENDS = ("auto", "cython", "ctypes", "dlpack", "torch", "tvm_ffi", "simulator")
_WITHOUT_EFFECT = ("target_host", "execution_backend", "compile_flags")
"""Arguments that existing scripts pass, and that change nothing."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The arguments of ``jit`` and ``compile``.

    Attributes:
        out_idx: positions of the parameters that a call allocates and returns; a negative position counts from the end.
        workspace_idx: positions of the parameters that a call allocates and does not return.
        target: the dialect, see :mod:`tilelang_npu.runtime.settings.targets`.
        platform: the chip family, used if no chip is named.
        chip: the chip: its name, a TOML file, or the chip itself.
        pass_configs: compiler switches.
        verbose: log the compilation.
        debug_root_path: directory to which the first and the last stage of the kernel are written.
        sanitize: look for races, broken flag protocols and results of uninitialised memory after every run, and raise a
            :class:`SanitizerError` if there are any; None: as ``TILELANG_NPU_SANITIZE`` says.
        interpret: execute the kernel as Python, without compiling it; None: as ``TILELANG_NPU_INTERPRET`` says.
        at: location of the ``jit`` or ``compile`` in the source.
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
        """Returns a key of everything that a kernel depends on apart from its factory's arguments, in the current
        environment."""
        switches = sorted(repr(item) for item in self.pass_configs.items()) if isinstance(self.pass_configs, Mapping) else ()
        chip = select_chip(self.chip, self.platform, self.at)
        return (
            dialect_of(self.target, self.at),
            chip.name if not chip.file else repr(chip),  # a file can change between two calls
            tuple(switches),
            environment.MODE.text(),
            environment.WITHOUT.text(),
            self.is_interpreted(),
        )

    def is_interpreted(self) -> bool:
        """Whether the kernel runs as Python."""
        return environment.INTERPRET.is_on() if self.interpret is None else self.interpret


class MadeBy(NamedTuple):
    """The factory function that returned a kernel's ``prim_func``, and its arguments."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def read_settings(caller: str, given: Mapping[str, Any], at: Location | None) -> Settings:
    """Returns the settings in keyword arguments.

    Args:
        caller: ``jit`` or ``compile``, for messages.
        given: the keyword arguments.
        at: location of the call.

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
                        help=f"one of {', '.join(_BACKENDS)}")
    for name in ("sanitize", "interpret"):
        if given.get(name) not in (None, True, False):
            msg = f"{name} is {given[name]!r}, neither True nor False"
            raise TileError(msg, code="T707", location=location_of_word(name, at), help=f"write {name}=True")
    return replace(Settings(at=at), **{name: value for name, value in given.items() if name in fields})
