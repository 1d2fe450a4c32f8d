"""A script as text that can be edited, and the call of one of its factories.

A version of the script is not run again as a whole. Only the definitions that belong to the kernel are executed: the factory,
the macros that it uses, and assignments of constants. All other names have the values that they had in the script.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tilelang_npu.errors import TileError
from tilelang_npu.runtime.settings.log import silenced
from tilelang_npu.sharing import parse_python

if TYPE_CHECKING:
    from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
    from tilelang_npu.runtime.kernel.draft import Draft

_NUMBERS = itertools.count(1)
_MAX_SOURCES = 64
"""The number of versions whose lines stay available to error messages."""
_CONSTANT = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple, ast.List,
             ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
"""The nodes of an expression that is evaluated again in each version: it has no calls, whose effects would be repeated."""


class _Factory(Protocol):
    """The parts of a factory, a function under ``@jit``, that this module uses: it lies below the module that defines it."""

    def draft(self, *args: object, **kwargs: object) -> Draft: ...
    def compile(self, *args: object, **kwargs: object) -> CompiledKernel: ...


@dataclass(frozen=True)
class ScriptVersion:
    """A version of a script, and the call of one of its factories.

    Attributes:
        text: the source of the script.
        path: the path of the script.
        factory: the name of the factory, or of the eager function, at the top level of the script.
        names: the global names of the script with their values.
        args: the positional arguments of the factory.
        kwargs: the named arguments of the factory; for an eager function also the sizes of ``T.const``.
        call_line: a line of the call in the script, whose arguments can be edited; None if no call in the script is known.
    """

    text: str
    path: Path
    factory: str
    names: Mapping[str, Any] = field(repr=False)
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    call_line: int | None = None

    def _factory(self) -> _Factory:
        found: _Factory | None = self._executed().get(self.factory)
        found = getattr(found, "factory", found)  # that of a function under @autotune
        if not (hasattr(found, "draft") and hasattr(found, "compile")):
            raise TileError(f"{self.path.name} has no factory {self.factory!r} at its top level", code="T810",
                            help="name a function of the file that is under @tilelang.jit")
        assert found is not None
        return found

    def draft(self) -> Draft:
        """Executes the definitions of this version, and traces the kernel of the factory's call.

        Raises:
            Exception: any exception of the definitions, and the errors of tracing.
        """
        with silenced():
            return self._factory().draft(*self.args, **self.kwargs)

    def kernel(self) -> CompiledKernel:
        """Executes the definitions of this version, and compiles the kernel of the factory's call.

        Raises:
            Exception: any exception of the definitions, and the errors of compiling.
        """
        with silenced():
            return self._factory().compile(*self.args, **self.kwargs)

    def _executed(self) -> Mapping[str, Any]:
        """Executes the definitions of the kernel, and returns the global names with their values."""
        number = next(_NUMBERS)
        name = f"<{self.path.name}, version {number}>"  # its lines differ from those of the file
        linecache.cache[name] = (len(self.text), None, self.text.splitlines(keepends=True), name)
        linecache.cache.pop(f"<{self.path.name}, version {number - _MAX_SOURCES}>", None)
        tree = parse_python(self.text, name)
        tree.body = list(_definitions(tree, self.factory))
        names = dict(self.names)
        exec(compile(tree, name, "exec", dont_inherit=True), names)
        return names


def _definitions(tree: ast.Module, factory: str) -> Iterator[ast.stmt]:
    """Yields the statements at the top level of a script that define the kernel: the factory, functions that it reads by name,
    and assignments of constants."""
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    needed = [factory]
    for name in needed:  # the list grows
        for node in ast.walk(functions[name]) if name in functions else ():
            if isinstance(node, ast.Name) and node.id in functions and node.id not in needed:
                needed.append(node.id)
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            if statement.name in needed:
                yield statement
        elif isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets):
            if all(isinstance(node, _CONSTANT) for node in ast.walk(statement.value)):
                yield statement
        elif isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            yield statement


def program_of(kernel: CompiledKernel) -> ScriptVersion:
    """Returns the script, or the notebook cell, in which the factory of a kernel is defined, and the factory's call.

    Raises:
        TileError: T734 the source cannot be read; T810 the kernel was not made by a factory at the top level of a file, or
            comes from a pickle.
    """
    found = call_of(kernel)
    if found is None:
        raise TileError(f"{kernel.name} was not made by a factory at the top level of a file", code="T810",
                        help="put the kernel into a function at the top level, under @tilelang.jit, that returns it; for a"
                             " kernel from a pickle, call its factory again")
    assert kernel.made_by is not None
    function: Any = kernel.made_by.function
    file = function.__code__.co_filename
    text = "".join(linecache.getlines(file))
    if not text:
        raise TileError(f"the source of {kernel.name} in {file} cannot be read", code="T734",
                        help="define the factory in a file or in a notebook cell")
    return found.version(text, Path(file), function.__globals__)


@dataclass(frozen=True)
class FactoryCall:
    """The call of a factory, or of an eager function, at the top level of a script.

    Attributes:
        factory: the name of the factory.
        args: the positional arguments.
        kwargs: the named arguments; all arguments if each parameter has a name. For an eager function also the sizes of
            ``T.const``.
        line: a line of the call in the file of the factory; None if the call is in another file, or not all parameters have
            names.
    """

    factory: str
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    line: int | None

    def version(self, text: str, path: Path, names: Mapping[str, Any]) -> ScriptVersion:
        """Returns the script as it is, with this call.

        Args:
            text, path, names: the source of the script, its path, and its global names with their values.
        """
        return ScriptVersion(text, path, self.factory, names, self.args, self.kwargs, self.line)


def call_of(kernel: CompiledKernel, path: Path | None = None) -> FactoryCall | None:
    """Returns the call of the factory, or of the eager function, that made a kernel.

    None if no factory made the kernel, the factory is not at the top level of its file, or it is in another file than ``path``.
    """
    made_by = kernel.made_by
    if made_by is None:
        return None
    function: Any = made_by.function
    code = getattr(function, "__code__", None)
    if code is None or "." in function.__qualname__ or (path is not None and Path(code.co_filename) != path):
        return None
    line = made_by.at.line if made_by.at is not None and made_by.at.file == code.co_filename else None
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) for one in parameters):
        return FactoryCall(function.__name__, made_by.args, made_by.kwargs, None)
    return FactoryCall(function.__name__, (), {**made_by.arguments(defaults=False), **made_by.sizes}, line)
