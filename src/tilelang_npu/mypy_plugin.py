"""A mypy plugin that lets mypy check the bodies of kernels: ``plugins = ["tilelang_npu.mypy_plugin"]`` in its configuration.

The annotations of a kernel are not Python types: ``A: T.Tensor((M, N), "float16")`` is a call, and authors leave out the return
type of a kernel and the type of a factory's ``tile_M=128``. Without the plugin mypy does not check a kernel's body
(``prim_func`` is ``typing.no_type_check`` in the stubs). The plugin changes the annotations of each file that imports the
language before mypy analyses the file:

* It replaces an annotation ``T.Tensor(...)`` or ``T.Tensor[...]`` by the type ``T.Tensor``, and ``T.int32`` by ``int``.
* It adds the missing annotations of functions under ``prim_func``, ``macro`` and ``jit``: ``Any`` for a parameter, ``None`` for
  the result of a kernel, and ``PrimFunc`` for the result of a function under ``jit`` that defines a kernel.

With mypy's option ``--num-workers``, mypy's worker processes read files without plugins, and bodies are not checked.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mypy.nodes import (
    MISSING_FALLBACK,
    AssignmentStmt,
    Block,
    CallExpr,
    ClassDef,
    Decorator,
    Expression,
    ForStmt,
    FuncDef,
    IfStmt,
    MemberExpr,
    MypyFile,
    NameExpr,
    PassStmt,
    Statement,
    TempNode,
    TryStmt,
    TypeInfo,
    WhileStmt,
    WithStmt,
)
from mypy.options import Options
from mypy.plugin import FunctionContext, MethodContext, Plugin, ReportConfigContext
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    NoneType,
    Parameters,
    RawExpressionType,
    Type,
    TypeOfAny,
    UnboundType,
    get_proper_type,
)

CONSTANT = "TILELANG_NPU_BODIES"
"""The constant that the stubs test: if it is true, type checkers check the bodies of kernels. This plugin sets it for mypy, and
a pyright configuration sets it in ``defineConstant``.
"""
_PACKAGES = ("tilelang_npu", "tilelang")
_NUMBERS = {"bool": "bool", "int": "int", "float": "float",
            **dict.fromkeys(("float16", "bfloat16", "float32", "float64"), "float"),
            **{f"{sign}int{bits}": "int" for sign in ("", "u") for bits in (8, 16, 32, 64)}}


class KernelPlugin(Plugin):
    """The mypy plugin: replaces and adds annotations of kernels before mypy analyses a file, see the module's docstring."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        if not getattr(options, "num_workers", 0) and CONSTANT not in options.always_true:
            options.always_true.append(CONSTANT)

    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        """Replaces and adds the annotations of the kernels in a file, and returns no dependencies.

        mypy calls this method after it has parsed the file and before it analyses the file.
        """
        names = _Names.of(file)
        if names:
            for function, decorators in _functions(file.defs):
                _declare(function, names)
                _complete(function, decorators, names)
            for statement in _statements(file.defs):
                if isinstance(statement, AssignmentStmt) and statement.unanalyzed_type is not None:
                    written = _as_type(statement.unanalyzed_type, names)
                    statement.type = statement.unanalyzed_type = written
        return []

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """Returns the hook that computes the type of ``jit(function)``, and None for other functions."""
        return self._factory if fullname == "tilelang_npu.runtime.jit.factory.jit" else None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """Returns the hook that computes the type of ``jit(...)(function)``, and None for other methods.

        The hook is needed because mypy does not choose between the overloads of ``jit`` for functions whose types contain
        ``Any``.
        """
        return self._factory if fullname == "tilelang_npu.runtime.jit.factory.Jit.__call__" else None

    def _factory(self, ctx: FunctionContext | MethodContext) -> Type:
        """Returns for a function that returns a kernel the type ``Factory``, whose call returns a ``JITKernel``; for any other
        function, the type that mypy has computed.
        """
        function = get_proper_type(ctx.arg_types[0][0]) if ctx.arg_types and ctx.arg_types[0] else None
        result = get_proper_type(function.ret_type) if isinstance(function, CallableType) else None
        factory, kernel = (self.lookup_fully_qualified(f"tilelang_npu.runtime.{name}") for name in (
            "jit.factory.Factory", "jit.jit_kernel.JITKernel"))
        if not (isinstance(function, CallableType) and isinstance(result, Instance) and result.type.name == "PrimFunc"
                and factory and kernel and isinstance(factory.node, TypeInfo) and isinstance(kernel.node, TypeInfo)):
            return ctx.default_return_type
        parameters = Parameters(function.arg_types, function.arg_kinds, function.arg_names)
        return Instance(factory.node, [parameters, Instance(kernel.node, [])])

    def report_config_data(self, ctx: ReportConfigContext) -> str | None:
        """Returns data that makes mypy ignore its cache for files with kernels, and None for other files.

        The data differs between mypy's look-up and its write. A file from the cache would be analysed without a call of
        :meth:`get_additional_deps`, and thus without the plugin's annotations.
        """
        if not _source(ctx.id, ctx.path):
            return None
        return "looked for" if ctx.is_check else "kept"  # never the same


def plugin(version: str) -> type[Plugin]:
    """Returns the plugin's class; mypy calls this function by its name when it loads the module."""
    del version
    return KernelPlugin


@dataclass
class _Names:
    """The names of the language in a file, and its decorators.

    Attributes:
        modules: the prefixes of names of the language: ``T``, or ``tilelang_npu.language``.
        own: names that are imported from the language.
        calls: for each place of an annotation that is a call, the name that is called.
    """

    modules: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    calls: dict[tuple[int, int], str] = field(default_factory=dict)

    @classmethod
    def of(cls, file: MypyFile) -> _Names | None:
        """Returns the names of the language in a file; None if the file does not import the language."""
        found = cls()
        try:
            tree = ast.parse(_source(file.fullname, file.path))
        except (SyntaxError, ValueError):
            return None  # mypy says what is wrong with the file
        for node in ast.walk(tree):
            found._read(node)
        return found if found.modules or found.own else None

    def _read(self, node: ast.AST) -> None:
        languages = [f"{package}.language" for package in _PACKAGES]
        if isinstance(node, ast.Import):
            self.modules |= {alias.asname or alias.name for alias in node.names if alias.name in languages}
        elif isinstance(node, ast.ImportFrom) and node.module in languages:
            self.own |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module in _PACKAGES:
            self.modules |= {alias.asname or alias.name for alias in node.names if alias.name == "language"}
        for child in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(child, ast.Call):
                self.calls[child.lineno, child.col_offset] = ast.unparse(child.func)

    def of_language(self, dotted: str) -> str:
        """Returns the name in the language to which a dotted name refers; empty if it is no name of the language."""
        head, _, last = dotted.rpartition(".")
        return last if head in self.modules or (not head and last in self.own) else ""


def _source(module: str, path: str) -> bytes:
    """Returns the text of a file that possibly contains kernels; empty for any other file and for files of packages."""
    if module.partition(".")[0] in _PACKAGES or "site-packages" in path or not path.endswith(".py"):
        return b""
    try:
        text = Path(path).read_bytes()
    except OSError:
        return b""  # mypy says what is wrong with the file
    return text if b"tilelang" in text else b""


def _statements(body: Sequence[Statement]) -> Iterator[Statement]:
    """Yields statements, and all statements that are nested in their blocks."""
    for statement in body:
        yield statement
        for block in _blocks(statement):
            yield from _statements(block.body)


def _blocks(statement: Statement) -> Iterator[Block]:
    if isinstance(statement, Decorator):
        yield statement.func.body
    elif isinstance(statement, FuncDef):
        yield statement.body
    elif isinstance(statement, ClassDef):
        yield statement.defs
    elif isinstance(statement, IfStmt):
        yield from statement.body
        yield from [statement.else_body] if statement.else_body else []
    elif isinstance(statement, (ForStmt, WhileStmt)):
        yield statement.body
        yield from [statement.else_body] if statement.else_body else []
    elif isinstance(statement, WithStmt):
        yield statement.body
    elif isinstance(statement, TryStmt):
        yield statement.body
        yield from statement.handlers
        yield from [block for block in (statement.else_body, statement.finally_body) if block]


def _functions(body: Sequence[Statement]) -> Iterator[tuple[FuncDef, list[str]]]:
    """Yields each function that the statements define, with the names of its decorators."""
    for statement in _statements(body):
        if isinstance(statement, Decorator):
            yield statement.func, [_dotted(decorator) for decorator in statement.original_decorators]
        elif isinstance(statement, FuncDef):
            yield statement, []


def _dotted(expression: Expression) -> str:
    if isinstance(expression, CallExpr):
        return _dotted(expression.callee)
    if isinstance(expression, MemberExpr):
        return f"{_dotted(expression.expr)}.{expression.name}"
    return expression.name if isinstance(expression, NameExpr) else ""


def _as_type(annotation: Type, names: _Names) -> Type:
    """Returns the type that replaces an annotation: the type of a buffer or number for an annotation of the language.

    Any other annotation is returned unchanged.
    """
    if isinstance(annotation, RawExpressionType):
        dotted = names.calls.get((annotation.line, annotation.column), "")
    elif isinstance(annotation, UnboundType):
        dotted = annotation.name
    else:
        return annotation
    last = names.of_language(dotted)
    if not last:
        return annotation
    return UnboundType(_NUMBERS.get(last, dotted), line=annotation.line, column=annotation.column)


def _complete(function: FuncDef, decorators: Sequence[str], names: _Names) -> None:
    kernel = any(names.of_language(dotted) == "prim_func" for dotted in decorators)
    macro = any(names.of_language(dotted) == "macro" for dotted in decorators)
    factory = any(dotted.rpartition(".")[2] == "jit" for dotted in decorators)
    marked = kernel or macro or factory
    if not (marked or isinstance(function.type, CallableType)):
        return
    left_out = AnyType(TypeOfAny.explicit)
    written = function.type if isinstance(function.type, CallableType) else _untyped(function)
    kinds = [left_out if marked and _is_left_out(kind) else _as_type(kind, names) for kind in written.arg_types]
    result = _as_type(written.ret_type, names)
    if marked and _is_left_out(result):
        result = NoneType() if kernel else _made(function, names) if factory else left_out
    made = written.copy_modified(arg_types=kinds, ret_type=result)
    made.set_line(function)
    function.type = function.unanalyzed_type = made
    for argument, kind in zip(function.arguments, kinds, strict=True):
        argument.type_annotation = kind


def _declare(function: FuncDef, names: _Names) -> None:
    """Makes the declarations in the body of a function that contains its kernel the annotations of its parameters.

    A declaration such as ``A: T.Tensor((M, N), dtype)`` becomes the annotation of the parameter ``A``.
    """
    for place, statement in enumerate(function.body.body):
        if not (isinstance(statement, AssignmentStmt) and isinstance(statement.rvalue, TempNode) and statement.unanalyzed_type):
            continue
        target = statement.lvalues[0]
        if isinstance(target, NameExpr) and target.name in function.arg_names:
            written = function.type if isinstance(function.type, CallableType) else _untyped(function)
            kinds = list(written.arg_types)
            kinds[function.arg_names.index(target.name)] = _as_type(statement.unanalyzed_type, names)
            function.type = written.copy_modified(arg_types=kinds)
            function.body.body[place] = PassStmt()


def _untyped(function: FuncDef) -> CallableType:
    left_out = AnyType(TypeOfAny.unannotated)
    return CallableType([left_out] * len(function.arguments), function.arg_kinds, function.arg_names, left_out,
                        Instance(MISSING_FALLBACK, [], -1), name=function.name, definition=function)


def _is_left_out(kind: Type) -> bool:
    return isinstance(kind, AnyType) and kind.type_of_any == TypeOfAny.unannotated


def _made(factory: FuncDef, names: _Names) -> Type:
    """Returns the result type of a function under ``jit``: ``PrimFunc`` if the function defines a kernel, otherwise ``Any``."""
    for module in sorted(names.modules):
        if any(isinstance(part, Decorator) and any(names.of_language(_dotted(each)) == "prim_func"
                                                   for each in part.original_decorators)
               for part in _statements(factory.body.body)):
            return UnboundType(f"{module}.PrimFunc")
    return AnyType(TypeOfAny.explicit)
