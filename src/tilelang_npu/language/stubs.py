"""Generates the text of the stub file ``language/__init__.pyi``, which type checkers and editors read.

The functions of the op table are created at run time, so the stub file has the signature and the docstring of each of them.
Other names are imported from the modules that define them. ``tilelang-npu ops --stubs`` prints the text; a test compares the
file with it.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

from tilelang_npu import language
from tilelang_npu.language import (
    _HOMES,
    _repeat_names,
    _structured_names,
    _vector_names,
    eager,
    elements,
    functions,
    launch,
    layouts,
    scalar,
    types,
)
from tilelang_npu.language.elements import TOKENS
from tilelang_npu.language.types import StridedTensor, Tensor
from tilelang_npu.traced import symbols

__all__ = ["BUFFERS", "callables", "parameters", "text"]

_TYPES = {
    "Any": "typing", "Callable": "collections.abc", "Sequence": "collections.abc",
    "Addressable": "tilelang_npu.traced.buffers", "Buffer": "tilelang_npu.traced.buffers",
    "Operand": "tilelang_npu.traced.buffers", "Sizes": "tilelang_npu.traced.buffers", "Tile": "tilelang_npu.traced.buffers",
    "Number": "tilelang_npu.traced.symbols",
    "Call": "tilelang_npu.language.declared_buffers", "Declared": "tilelang_npu.language.declared_buffers",
    "ElementType": "tilelang_npu.language.elements", "Extents": "tilelang_npu.language.elements",
}
"""The module of each type that signatures name."""
_NUMBERS = re.compile(r"(?:(?<=[:|,] )|(?<=\[))(bool|float|int)\b")
"""Python's numbers in a signature, whose names are element types in ``T``."""
_RESULTS = {"empty": "Buffer", "alloc_global": "Buffer"}
"""Results that differ from the annotation: in the kernel, a tensor that a call allocates is a buffer."""
BUFFERS = ("FragmentBuffer", "LocalBuffer", "SharedBuffer")
_OWN = {"Buffer", "StridedTensor", "Tensor", "dtype", "prim_func", "ascend_tile", "tile", "vmi", *BUFFERS, *TOKENS}
"""Names that are neither imported unchanged nor entries of the op table."""

_HEADER = '''\
# Made by `tilelang-npu ops --stubs`; a test holds that this file is what it prints.
"""The language: ``import tilelang_npu.language as T``."""
'''
_DECLARED = '''
class Tensor(Buffer):
{doc}
    def __init__(self, shape: Extents, dtype: ElementType = "float32", data: Addressable | None = None) -> None: ...
    def __class_getitem__(cls, item: object) -> type[Tensor]: ...

class StridedTensor(Buffer):
{strided}
    def __init__(self, shape: Extents, strides: Extents, dtype: ElementType = "float32") -> None: ...
    def __class_getitem__(cls, item: object) -> type[StridedTensor]: ...

{buffers}

# A kernel's annotations are calls, which no type checker takes for types: `no_type_check` keeps it from the whole function.
# Where a checker is told how to read them (docs/typing.md), the constant is true, and bodies are checked.
MYPY: _bool
TILELANG_NPU_BODIES: _bool
if MYPY and not TILELANG_NPU_BODIES:
    from typing import no_type_check as prim_func
elif TILELANG_NPU_BODIES:
    from tilelang_npu.language.functions import prim_func as prim_func  # type: ignore[assignment]  # a checker reads one branch
else:
    from typing import no_type_check as prim_func

dtype = ScalarType
'''


def callables() -> dict[str, Callable[..., object]]:
    """Returns all callables of ``T`` by their names after ``T.``, such as ``copy`` and ``tile.add``."""
    names = [name for name in dir(language) if name != "tile"] + [f"tile.{name}" for name in dir(language.tile)]
    found = {name: _value(name) for name in names}
    return {name: value for name, value in found.items() if callable(value)}


def text() -> str:
    """Returns the text of the stub file."""
    written = _written()
    table = [name for name in dir(language) if name in written]
    functions = "\n".join(_function(name, _value(name)) for name in table)
    tiles = "\n".join(_function(name, _value(f"tile.{name}"), indent="    ") for name in dir(language.tile))
    buffers = "\n".join(f"{name} = Buffer" for name in BUFFERS)
    doc, strided = (_docstring(inspect.getdoc(kind) or "", "    ") for kind in (Tensor, StridedTensor))
    declared = _DECLARED.format(doc=doc, strided=strided, buffers=buffers)
    tokens = "\n".join(f"{name}: ScalarType" for name in sorted(TOKENS))
    body = f"""{declared}{tokens}

{functions}
class _Tile:
    \"\"\"``T.tile``: vector operations with the destination first.\"\"\"

{tiles}
tile: _Tile
ascend_tile: _Tile
"""
    public = ", ".join(f'"{name}"' for name in dir(language))
    listed = textwrap.fill(public, 120, initial_indent="    ", subsequent_indent="    ")
    return f"{_HEADER}\n{_imports(body)}\n{body}\n__all__ = [\n{listed},\n]\n"


def _value(name: str) -> Any:
    owner = language.tile if name.startswith("tile.") else language
    return getattr(owner, name.removeprefix("tile."))


def _written() -> frozenset[str]:
    """Names whose signature and docstring are in the stub: functions of the op table that no module defines, and functions that
    a module makes.
    """
    table = _vector_names() | _structured_names() | _repeat_names()
    made = {name for name in _HOMES if getattr(inspect.unwrap(_value(name)), "__closure__", None)}
    return (table - _HOMES.keys() - set(language.__all__)) | made | _RESULTS.keys()


def _imports(body: str) -> str:
    used = {name: module for name, module in _TYPES.items() if re.search(rf"\b{name}\b", body)}
    lines = [f"from {module} import {name}" for name, module in used.items() if name != "Buffer"]
    lines.append("from tilelang_npu.traced.buffers import Buffer as Buffer")
    lines.append("from tilelang_npu.language.elements import ScalarType")
    lines.append("from tilelang_npu.language import vmi as vmi")
    lines += [f"from builtins import {name} as _{name}" for name in ("bool", "float", "int") if f"_{name}" in body]
    written = _written()
    for name in dir(language):
        if name not in written and name not in _OWN:
            module, attribute = _home(name)
            lines.append(f"from {module} import {attribute} as {name}")
    return "\n".join(sorted(set(lines)))


def _home(name: str) -> tuple[str, str]:
    """The module that defines a name of the language, and its name there."""
    if name in _HOMES:
        home, attribute = _HOMES[name]
        return f"{language.__name__}.{home}", attribute
    value = getattr(language, name)
    for module in (eager, elements, functions, launch, layouts, scalar, symbols, types):
        for attribute in (name, name.lower()):
            found = vars(module).get(attribute)
            if callable(found) and inspect.unwrap(found) is inspect.unwrap(value):
                return module.__name__, attribute
    raise LookupError(name)


def _function(name: str, value: Callable[..., object], indent: str = "") -> str:
    made = inspect.unwrap(value)
    decorator = f"{indent}@staticmethod\n" if indent else ""
    given = _NUMBERS.sub(r"_\1", parameters(inspect.signature(made)))
    header = textwrap.fill(f"def {name}({given})", 116, initial_indent=indent,
                           subsequent_indent=indent + " " * len(f"def {name}("))
    result = _RESULTS.get(name, inspect.signature(made).return_annotation)
    return f"{decorator}{header} -> {result}:\n{_docstring(inspect.getdoc(made) or '', indent + '    ')}\n"


def parameters(signature: inspect.Signature) -> str:
    """The parameters of a signature as source text; annotations are text already."""
    parts: list[str] = []
    keyword_only = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
        keyword_only |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{star}{parameter.name}: {parameter.annotation}{default}")
    return ", ".join(parts)


def _docstring(doc: str, indent: str) -> str:
    quoted = f'r"""{doc}' if "\\" in doc else f'"""{doc}'
    return textwrap.indent(quoted + ('\n"""' if "\n" in doc else '"""'), indent)
