"""Finds the syntax tree of a kernel's function, with line and column numbers of the author's file.

The whole file is parsed once, and functions are looked up by name and first line, so that positions refer to the file. The
source of notebook cells is read through :mod:`linecache`.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from dataclasses import dataclass
from types import FunctionType

from tilelang_npu.errors import Location, TileError
from tilelang_npu.sharing import parse_python
from tilelang_npu.traced.author import user_location


@dataclass(frozen=True)
class Source:
    """The source of a function.

    Attributes:
        node: the syntax tree of the function's definition.
        file: the path of the file, as in the function's code object.
        lines: all lines of the file.
    """

    node: ast.FunctionDef
    file: str
    lines: list[str]


@dataclass(frozen=True)
class _File:
    text: str
    functions: dict[tuple[str, int], ast.FunctionDef]


_PARSED: dict[str, _File] = {}


def find(function: FunctionType) -> Source:
    """Returns the source of ``function``.

    Raises:
        TileError: T143, the function has no source (``exec`` of a string, an interactive prompt), or the file was changed since
            it was imported, so that the function is at another line; T141, the function is not a plain ``def``.
    """
    code = function.__code__
    file, line = code.co_filename, code.co_firstlineno
    _require_plain(function)
    linecache.checkcache(file)
    # a string has no source: an entry of linecache with that name belongs to other code
    lines = [] if file in ("<string>", "<stdin>") else linecache.getlines(file, function.__globals__)
    if not lines:
        raise TileError(f"no source for {function.__name__!r} (from {file}); a kernel is compiled from its source", code="T143",
                        location=user_location(), help=f"write the kernel in a file or a notebook cell; {_FROM_TEXT}")
    node = _parse(file, "".join(lines)).functions.get((code.co_name, line))
    if node is None:
        raise TileError(f"{function.__name__!r} is not at line {line} of {file}: the file was changed since it was imported, "
                        "or the kernel was compiled from a text that states the name of this file",
                        code="T143", location=Location(file, line), help=f"import it again; {_FROM_TEXT}")
    return Source(node, file, lines)


_FROM_TEXT = ("to compile a text, give it a name of its own: linecache.cache[name] = (len(text), None, text.splitlines(True), "
              "name), then exec(compile(text, name, 'exec'))")


def _require_plain(function: FunctionType) -> None:
    """Raises T141 where the source of a function is not that of the kernel."""
    code = function.__code__
    here = Location(code.co_filename, code.co_firstlineno)
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise TileError(f"{function.__name__!r} is an `async def`, and a kernel cannot await", code="T141",
                        location=here, help="write def")
    if code.co_name == "<lambda>":
        raise TileError("a kernel is a def, not a lambda", code="T141", location=here, help="write a def with its statements")
    inner = getattr(function, "__wrapped__", None)
    if inner is not None:
        name = getattr(inner, "__name__", function.__name__)
        place = getattr(inner, "__code__", code)
        raise TileError(f"a decorator has wrapped {name!r} in {code.co_name!r}, which hides the kernel's source", code="T141",
                        location=Location(place.co_filename, place.co_firstlineno),
                        help="let @T.prim_func or @T.macro be the decorator right above the def")


def _parse(file: str, text: str) -> _File:
    known = _PARSED.get(file)
    if known is None or known.text != text:
        try:
            tree = parse_python(text, filename=file)
        except SyntaxError as problem:
            raise TileError(f"{file} was changed since it was imported and is no longer valid Python: {problem.msg}",
                            code="T143", location=Location(file, problem.lineno or 1), help="import it again") from None
        functions = {
            (node.name, min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])): node
            for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
        }
        known = _PARSED[file] = _File(text, functions)
    return known
