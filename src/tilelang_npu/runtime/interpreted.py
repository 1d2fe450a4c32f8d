"""Kernels that are executed by the interpreter: ``kernel.interpret(...)`` and ``TILELANG_NPU_INTERPRET=1``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tilelang_npu.errors import doors
from tilelang_npu.frontend.dialects import detect
from tilelang_npu.frontend.parameters import declared, symbols_of
from tilelang_npu.interpreter import IndexInt, KernelSource, interpret
from tilelang_npu.runtime.binding import BoundCall, Signature, indices
from tilelang_npu.runtime.pointing import find
from tilelang_npu.runtime.targets import dialect_of
from tilelang_npu.runtime.tensors import like_caller
from tilelang_npu.traced import source as sources
from tilelang_npu.traced.symbols import Sym

if TYPE_CHECKING:
    from tilelang_npu.language.functions import PrimFunc
    from tilelang_npu.runtime.factory import MadeBy, Settings
    from tilelang_npu.runtime.kernel import JITKernel

__all__ = ["InterpretedKernel", "execute"]


class InterpretedKernel:
    """A kernel that runs as Python. What needs a compiled kernel, such as ``mlir()`` and ``profile()``, compiles it.

    Attributes:
        prim_func: its function.
        name: its name.
        dialect: ``npuir`` or ``ascendc``.
        signature: what it is called with.
        is_interpreted: whether it runs as Python.
    """

    is_interpreted = True

    def __init__(self, func: PrimFunc, settings: Settings, compile_it: Callable[[], JITKernel],
                 lengths: Mapping[str, int] | None = None) -> None:
        self.prim_func, self._settings, self._compile_it = func, settings, compile_it
        self.name = func.function.__name__
        found, _ = func.definition or (sources.find(func.function), {})
        chosen = dialect_of(settings.target, settings.at)
        self.dialect = detect(found.node) if chosen == "auto" else chosen
        parameters = declared(func, found, lengths or {})
        count = len(parameters)
        self.signature = Signature(
            self.name, parameters, symbols_of(parameters),
            indices(settings.out_idx, count, "out_idx", find("out_idx", settings.at)),
            indices(settings.workspace_idx, count, "workspace_idx", find("workspace_idx", settings.at)), frozenset(),
            flat=self.dialect == "ascendc")
        self.out_idx, self.workspace_idx = list(self.signature.outputs), list(self.signature.workspaces)
        self.made_by: MadeBy | None = None
        self.keep: Any = None
        self.last_launch: Any = None
        self._compiled: JITKernel | None = None

    @property
    def compiled(self) -> JITKernel:
        """The kernel, compiled."""
        if self._compiled is None:
            self._compiled = self._compile_it()
            self._compiled.made_by = self.made_by
        return self._compiled

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Execute the kernel; arguments and results are those of a compiled kernel's call."""
        if "stream" in named and all(parameter.name != "stream" for parameter in self.signature.parameters):
            del named["stream"]
        args = self.signature.positional(args, named)
        if self.dialect == "npuir" and (lengths := self.signature.longer(args)):
            return InterpretedKernel(self.prim_func, self._settings, self._compile_it, lengths)(*args)
        call = self.signature.bind(args)
        execute(self.prim_func, self.signature, call, self.dialect)
        results = [like_caller(call.values[position], args) for position in self.out_idx]
        if not results:
            return None if self.dialect == "npuir" else []
        return results[0] if len(results) == 1 else results

    interpret = __call__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.compiled, name)

    def __repr__(self) -> str:
        names = ", ".join(parameter.name for parameter in self.signature.parameters)
        return f"<tilelang_npu kernel {self.name}({names}), interpreted>"


def execute(func: PrimFunc, signature: Signature, call: BoundCall, dialect: str) -> None:
    """Execute a kernel on the arguments of a call.

    Args:
        func: its function.
        signature: what it is called with; tensors that the compiled kernel makes for itself play no part.
        call: the arguments.
        dialect: whose rules its source follows.

    Raises:
        TileError: T734, the kernel comes from a pickle, which has no function; what the kernel does wrong.
    """
    function = func.function
    found, names = func.definition or (sources.find(function), {})
    given = {parameter.name: (value, parameter.dtype)
             for parameter, value in zip(signature.parameters, call.values, strict=True)
             if parameter.name in {argument.arg for argument in found.node.args.args + found.node.args.posonlyargs}}
    source = KernelSource(function, found.node, found.file, _find, dict(names), lambda value: _resolved(value, call.symbols))
    interpret(source, given, dialect)


def _find(function: FunctionType) -> tuple[ast.FunctionDef, str]:
    found = sources.find(function)
    return found.node, found.file


def _resolved(value: Any, symbols: Mapping[str, int]) -> Any:
    """A value of a closure with the sizes of this call in place of symbolic dimensions; the value itself where it has none."""
    if isinstance(value, Sym):
        return IndexInt(value.evaluate(symbols))
    if type(value) in (tuple, list):
        parts = [_resolved(part, symbols) for part in value]
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else type(value)(parts)
    if type(value) is dict:
        made = {key: _resolved(part, symbols) for key, part in value.items()}
        return value if all(made[key] is part for key, part in value.items()) else made
    return value


doors(globals())
