"""Determines the dialect of TileLang in which a kernel is written, by the operations that the kernel uses.

Not only the kernel's own function is searched, but also all functions that are reachable through its names: macros, plain
helpers, methods, and functions in containers. Only operations of the language count. An attribute of the author's own objects
that has the name of an operation, such as ``config.tile``, does not count.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType

from tilelang_npu import language, ops
from tilelang_npu.errors import TileError
from tilelang_npu.language import launch
from tilelang_npu.language.functions import Macro
from tilelang_npu.source_dialects import RequestedDialect, TracedDialect
from tilelang_npu.traced import source

_NPUIR = frozenset({"gemm", "rs", "load_nd2nz", "store_fixpipe", "store_nz2nd", "vbrc", "sync_block_set", "sync_block_wait",
                    "atomic_add", "atomic_addx2", "atomic_addx4", "alloc_local"})
_ASCENDC = frozenset({"gemm_v0", "gemm_v0_fixp", "mma", "tile", "barrier_all", "set_cross_flag", "wait_cross_flag",
                      "annotate_address", "printf", "dump_tensor", "set_deq_scale"})
_LIBRARIES = frozenset({"tilelang_npu", "numpy", "torch", "scipy", "ml_dtypes", "xdsl", *sys.stdlib_module_names})
"""The packages whose functions are not searched, because they use no operation of the language."""
_MOST_MEMBERS = 256
"""The largest number of members of a container that are searched for functions."""


class _Unknown:
    """The value of an expression that is known only when the source runs: a parameter, a local variable, a call."""


_UNKNOWN = _Unknown()


def detect(node: ast.FunctionDef, function: FunctionType | None = None,
           bound: Mapping[str, object] | None = None) -> TracedDialect:
    """Returns the dialect of a kernel, ``npuir`` or ``ascendc``.

    A kernel with a launch without ``is_npu`` is written for GPUs and has the dialect ``npuir``. A kernel without operations
    that are specific to a dialect has the dialect ``ascendc``, the default target.

    Args:
        node: the syntax tree of the kernel: a function's definition, or the part of it that is the kernel.
        function: the Python function, by which names are resolved. If it is None, names are not resolved, and only ``node`` is
            searched.
        bound: if ``node`` is a part of a function, the values of local names at the start of that part.
    """
    named: set[str] = set()
    for part, names in _sources(node, function, bound or {}):
        if isinstance(part, ast.Call) and _is_gpu_launch(part, names):
            return "npuir"
        named.update(_operations_named(part, names))
    if named & _ASCENDC:
        return "ascendc"
    # An operation of a plug-in has its plain name as an alias.
    entries = [*ops.elementwise(), *(op for op in ops.operations().values() if op.name in op.aliases)]
    destination_last = {alias for op in entries for alias in op.aliases if not alias.startswith("tile.")}
    if named & (_NPUIR | destination_last) or any(name.startswith("npuir_") for name in named):
        return "npuir"
    return "ascendc"


_VECTOR_FUNCTIONS = frozenset({"SimdVF", "SimtVF"})


def dialect_of_kernel(requested: RequestedDialect, node: ast.FunctionDef, function: FunctionType | None = None,
                      bound: Mapping[str, object] | None = None) -> TracedDialect:
    """Returns the dialect by which a kernel is traced.

    ``target="pto"`` requests ascendc. But the kernels of ``tilelang.ascend`` for Ascend 950, which have the same target, are
    written without ``is_npu`` and without waits: with a vector function, such a kernel has the dialect that its launch implies.

    Args:
        requested: the dialect that the target names, or ``auto``.
        node, function, bound: as for :func:`detect`.
    """
    if requested == "auto":
        return detect(node, function, bound)
    if requested != "ascendc":
        return "npuir"
    named = {part.attr if isinstance(part, ast.Attribute) else part.id for part in ast.walk(node)
             if isinstance(part, (ast.Attribute, ast.Name))}
    return detect(node, function, bound) if named & _VECTOR_FUNCTIONS else "ascendc"


@dataclass
class _NamesRead:
    """The values of the names in one function's source.

    Attributes:
        function: the function; None where no name can be resolved.
        bound: values of names that come first.
    """

    function: FunctionType | None
    bound: Mapping[str, object] = field(default_factory=dict)

    def value(self, node: ast.AST) -> object:
        """The value of a name or of an attribute of one; ``_UNKNOWN`` for other expressions."""
        if isinstance(node, ast.Name):
            return self._named(node.id)
        if isinstance(node, ast.Constant):
            return node.value
        if not isinstance(node, ast.Attribute):
            return _UNKNOWN
        home = self.value(node.value)
        if home is _UNKNOWN:
            return _UNKNOWN
        if isinstance(home, ModuleType) or home is language.tile:  # getattr would load the name
            return vars(home).get(node.attr, _UNKNOWN)
        found: object = inspect.getattr_static(home, node.attr, _UNKNOWN)
        return found.__func__ if isinstance(found, (staticmethod, classmethod)) else found

    def _named(self, name: str) -> object:
        if name in self.bound:
            return self.bound[name]
        function = self.function
        if function is None:
            return _UNKNOWN
        code = function.__code__
        if name in code.co_varnames or name in code.co_cellvars:
            return _UNKNOWN
        if name in code.co_freevars:
            cell = (function.__closure__ or ())[code.co_freevars.index(name)]
            try:
                return cell.cell_contents
            except ValueError:  # not assigned yet
                return _UNKNOWN
        return function.__globals__.get(name, getattr(builtins, name, _UNKNOWN))


def _sources(node: ast.AST, function: FunctionType | None, bound: Mapping[str, object]) -> Iterator[tuple[ast.AST, _NamesRead]]:
    """The syntax nodes of a kernel's source, and of the functions that its names lead to, each with the names of its source."""
    pending: list[tuple[ast.AST, _NamesRead]] = [(node, _NamesRead(function, bound))]
    seen = {id(function)}
    while pending:
        tree, names = pending.pop()
        for part in ast.walk(tree):
            yield part, names
            if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(part.ctx, ast.Load):
                for called in _functions(names.value(part)):
                    if id(called) not in seen:
                        seen.add(id(called))
                        pending.append((_tree(called), _NamesRead(called)))


def _functions(value: object) -> Iterator[FunctionType]:
    """The author's functions in a value, including those of macros."""
    pending, seen = [value], set[int]()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Macro):
            yield one.function
            pending += _defaults(one.function)
        elif isinstance(one, FunctionType):
            if not _of_a_library(one):
                yield one
                pending += _defaults(one)
        elif isinstance(one, MethodType):
            pending.append(one.__func__)
        elif isinstance(one, partial):
            pending += [one.func, *one.args, *one.keywords.values()]
        elif isinstance(one, (list, tuple, set, frozenset)):
            pending += list(one)[:_MOST_MEMBERS]
        elif isinstance(one, Mapping):
            pending += list(one.values())[:_MOST_MEMBERS]
        elif isinstance(one, type):
            if not _of_a_library(one):
                pending += [member for member in vars(one).values() if isinstance(member, (FunctionType, Macro))]
        elif callable(one) and isinstance(call := inspect.getattr_static(type(one), "__call__", None), FunctionType):
            pending.append(call)


def _defaults(function: FunctionType) -> list[object]:
    """The default values of parameters."""
    return [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def _of_a_library(value: FunctionType | type) -> bool:
    return str(value.__module__).partition(".")[0] in _LIBRARIES


def _tree(function: FunctionType) -> ast.AST:
    """The syntax tree of a function; for one without a source, such as a lambda, the names that its code reads."""
    try:
        return source.find(function).node
    except TileError:
        load = ast.Load()
        mentioned: list[ast.expr] = []
        for name in _names_in(function.__code__):  # of globals and of attributes
            mentioned += ast.Name(name, load), ast.Attribute(ast.List([], load), name, load)
        return ast.Tuple(mentioned, load)


def _names_in(code: CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _operations_named(part: ast.AST, names: _NamesRead) -> Iterator[str]:
    """The names of the operations of the language that a syntax node mentions; ``tile`` for every operation of ``T.tile``.

    An attribute of an expression with an unknown value counts as an operation.
    """
    if isinstance(part, ast.Attribute):
        home = names.value(part.value)
        if home is _UNKNOWN or home is language:
            yield part.attr
        elif home is language.tile:
            yield "tile"
    elif isinstance(part, ast.Name):
        value = names.value(part)
        if value is language.tile:
            yield "tile"
        elif value is not _UNKNOWN and str(getattr(value, "__module__", "")).startswith("tilelang_npu.language"):
            # a function may have several names; vars() has those that were used
            yield part.id if vars(language).get(part.id) is value else str(getattr(value, "__name__", part.id))


def _is_gpu_launch(call: ast.Call, names: _NamesRead) -> bool:
    """Whether a call is ``T.Kernel`` in the form for GPUs: without ``is_npu``, or with a false one."""
    function = names.value(call.func)
    if function is _UNKNOWN:
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "Kernel":
            return False
    elif function is not launch.Kernel:
        return False
    for keyword in call.keywords:
        value: object = names.value(keyword.value)
        if keyword.arg is None:  # **options
            if not isinstance(value, Mapping):
                return False
            if "is_npu" not in value:
                continue
            value = value["is_npu"]
        elif keyword.arg != "is_npu":
            continue
        return (value is None or isinstance(value, (bool, int))) and not value
    return True


__all__ = ["detect", "dialect_of_kernel"]
