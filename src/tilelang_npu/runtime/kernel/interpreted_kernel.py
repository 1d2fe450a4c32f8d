"""``InterpretedKernel``: a kernel that the interpreter executes, for ``kernel.interpret(...)`` and
``TILELANG_NPU_INTERPRET=1``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tilelang_npu.errors import doors
from tilelang_npu.frontend.dialects import dialect_of_kernel
from tilelang_npu.frontend.parameters import declared, symbols_of
from tilelang_npu.runtime.arguments.binding import Signature, positions_of
from tilelang_npu.runtime.checks.interpreter_check import execute
from tilelang_npu.runtime.settings.switches import resolve
from tilelang_npu.runtime.settings.targets import dialect_of, select_chip
from tilelang_npu.traced import source as sources

if TYPE_CHECKING:
    from tilelang_npu.language.functions import PrimFunc
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.runtime.settings.jit_settings import MadeBy, Settings
    from tilelang_npu.simulator import AnyLaunch


class InterpretedKernel:
    """A kernel whose calls execute its Python source in the interpreter.

    Methods that only compiled kernels have, such as ``mlir()`` and ``profile()``, compile the kernel on first use.

    Args:
        func: the function under ``@T.prim_func``.
        settings: the arguments of ``jit``, such as the target and the outputs.
        compile_kernel: a function that compiles the kernel and returns it.
        lengths: for parameters by name, the length of the first axis that replaces the declared length.

    Attributes:
        prim_func: the function under ``@T.prim_func``.
        name: the function's name.
        dialect: the dialect of TileLang in which the kernel is written: ``npuir`` or ``ascendc``.
        signature: the kernel's parameters, and the positions of outputs and workspaces.
        is_interpreted: True.
    """

    is_interpreted = True

    def __init__(self, func: PrimFunc, settings: Settings, compile_kernel: Callable[[], CompiledKernel],
                 lengths: Mapping[str, int] | None = None) -> None:
        self.prim_func, self._settings, self._compile = func, settings, compile_kernel
        self.name = func.function.__name__
        found, bound = func.definition or (sources.find(func.function), {})
        chosen = dialect_of(settings.target, settings.at)
        self.dialect = dialect_of_kernel(chosen, found.node, func.function, bound)
        self._vector_cores = select_chip(settings.chip, settings.platform, settings.at).aiv_per_aic
        self._switches = resolve(settings.pass_configs, self.dialect, settings.at)
        parameters = declared(func, found, lengths or {})
        count = len(parameters)
        self.signature = Signature(
            self.name, parameters, symbols_of(parameters), positions_of(settings.out_idx, count, "out_idx", settings.at),
            positions_of(settings.workspace_idx, count, "workspace_idx", settings.at), frozenset(),
            flat=self.dialect == "ascendc", unused=frozenset(range(count)))
        self.out_idx, self.workspace_idx = list(self.signature.outputs), list(self.signature.workspaces)
        self.made_by: MadeBy | None = None
        self.last_launch: AnyLaunch | None = None
        self._compiled: CompiledKernel | None = None

    @property
    def compiled(self) -> CompiledKernel:
        """The compiled form of the kernel, which is compiled on first use."""
        if self._compiled is None:
            self._compiled = self._compile()
            self._compiled.made_by = self.made_by
        return self._compiled

    def __call__(self, *args: object, **named: object) -> Any:
        """Executes the kernel's Python source on the arguments. Arguments and results are as for a compiled kernel's call."""
        args = self.signature.positional(args, named)
        if self.dialect == "npuir" and (lengths := self.signature.longer_lengths(args)):
            return InterpretedKernel(self.prim_func, self._settings, self._compile, lengths)(*args)
        call = self.signature.bind(args)
        execute(self.prim_func, self.signature, call, self.dialect, self._vector_cores, self._switches)
        return self.signature.results(call, args)

    interpret = __call__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.compiled, name)

    def __repr__(self) -> str:
        names = ", ".join(parameter.name for parameter in self.signature.parameters)
        return f"<tilelang_npu kernel {self.name}({names}), interpreted>"


doors(globals())
