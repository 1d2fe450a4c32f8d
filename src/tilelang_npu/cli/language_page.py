"""``ops --language``: the page docs/language.md, made from the functions of ``T`` and what the host has for kernels: how each
is called, and its docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from tilelang_npu.language import stubs
from tilelang_npu.language.elements import TOKENS
from tilelang_npu.runtime import factory
from tilelang_npu.runtime.kernel import JITKernel

__all__ = ["page"]

_HEAD = """\
# The language

`import tilelang_npu.language as T`. Made from the docstrings by `tilelang-npu ops --language`; a test holds that this page is
what they give. What an operation costs, and which op of HIVM it is, stands in [ops.md](ops.md); how types are checked, in
[typing.md](typing.md).

A `Tile` is a buffer, a slice, or the element where a tile starts; an `Operand` is one or a scalar; `Sizes` are one number for
each axis; `Extents` are a shape, or one size alone; an `ElementType` is `"float16"`, `T.float16`, or NumPy's or torch's.
"""
_SECTIONS = (
    ("Kernels", "functions", "launch.Kernel", "eager", "symbols", "types"),
    ("Loops and branches", "launch"),
    ("Buffers", "allocate"),
    ("Moving", "movement", "cube_moves"),
    ("Matrix products", "matrix", "dequantise"),
    ("Elementwise", "vector"),
    ("Reductions", "reduction"),
    ("Gathering, scanning, sorting, making", "structured"),
    ("By repeats and strides", "repeats"),
    ("Scalars", "scalar", "logical", "elements"),
    ("Order between pipes, cores and blocks", "sync", "blocks"),
    ("Looking at a run", "debug"),
)


def page() -> str:
    """The page as Markdown."""
    sections: dict[str, list[str]] = {title: [] for title, *_ in _SECTIONS}
    for names, value in _functions():
        sections[_section(names[0], value)].append(_entry(names, value))
    tokens = ", ".join(f"`T.{name}`" for name in sorted(TOKENS))
    sections["Scalars"].append(
        f"### Element types\n\n{tokens}: each is a string, an annotation (`n: T.int32`) and a cast (`T.float32(x)`).\n")
    sections["On the host"] = list(_host())
    return "\n".join([_HEAD, *(part for title, parts in sections.items() for part in (f"## {title}\n", *parts))])


def _host() -> Iterator[str]:
    """What makes kernels, what it takes, and what kernels can be asked."""
    yield _described("`tilelang.jit`, `tilelang.compile`", inspect.getdoc(factory.jit))
    yield _described("Arguments of `jit` and `compile`", inspect.getdoc(factory.Settings))
    yield _described("`JITKernel`", inspect.getdoc(JITKernel))
    for name, member in vars(JITKernel).items():
        if not name.startswith("_") or name == "__call__":
            call = "kernel" if name == "__call__" else f"kernel.{name}"
            yield _described(f"`{call}{_given(member)}`", inspect.getdoc(member))


def _given(member: object) -> str:
    """The parameters of a method behind ``self``; nothing of an attribute."""
    if not isinstance(member, FunctionType):
        return ""
    signature = inspect.signature(inspect.unwrap(member))
    return f"({stubs.parameters(signature.replace(parameters=[*signature.parameters.values()][1:]))})"


def _described(heading: str, doc: str | None) -> str:
    return f"### {heading}\n\n{_text(doc or '')}"


def _functions() -> Iterator[tuple[list[str], Any]]:
    """Each function once, with all its names."""
    found: dict[object, tuple[list[str], Any]] = {}
    for name, value in stubs.callables().items():
        if name in TOKENS or name in ("dtype", *stubs.BUFFERS):
            continue
        made = inspect.unwrap(value)
        key = _body(made) if made.__module__.rpartition(".")[2] in ("vector", "structured", "repeats") else made
        found.setdefault(key, ([], made))[0].append(name)
    yield from found.values()


def _body(made: Any) -> object:
    """What several names of one operation have in common: how they are called, and what they say."""
    return re.sub(r"T\.[\w.]+\(", "(", made.__doc__), str(inspect.signature(made))


def _section(name: str, value: Any) -> str:
    module = value.__module__.rpartition(".")[2]
    for title, *homes in _SECTIONS:
        if f"{module}.{name}" in homes or module in homes:
            return title
    raise LookupError(f"{module}.{name}")


def _entry(names: list[str], value: Any) -> str:
    """Names, calls and docstring."""
    parameters = stubs.parameters(inspect.signature(value))
    calls = "\n".join(f"T.{name}({parameters})" for name in names)
    several = parameters.startswith(("*operands: Any", "*arguments"))  # the text says which
    code = "" if several else f"```python\n{calls}\n```\n\n"
    return f"### {', '.join(f'`T.{name}`' for name in names)}\n\n{code}{_text(inspect.getdoc(value) or '')}"


def _text(doc: str) -> str:
    """A docstring as Markdown."""
    text = re.sub(r"``(.+?)``", r"`\1`", doc)
    text = re.sub(r":(?:class|func|meth|mod):`(.+?)`", r"`\1`", text)
    return "\n".join(_paragraph(part) for part in text.split("\n\n"))


def _paragraph(text: str) -> str:
    """A paragraph, or a list of arguments or errors, as Markdown."""
    first, _, rest = text.partition("\n")
    if first not in ("Args:", "Raises:", "Returns:", "Attributes:"):
        return f"{text}\n"
    items = re.sub(r"\n {4,}(?! )", "\n", "\n" + rest)
    lines = [re.sub(r"^(\*?\w[\w., ]*): ", r"- `\1`: ", line) for line in items.strip("\n").split("\n")]
    return "\n".join([first, "", *(line if line.startswith("- ") else f"  {line}" for line in lines), ""])

