"""The output of ``ops --language DIR``: the reference part of the pages docs/language/*.md, one page for each group of
functions.

Each page has a line that is its mark. The part above the mark, with an example, is written by hand. The part below is generated
from the docstrings: on most pages the functions of ``T``, and on the last page the host functions and the members of a kernel.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType

from tilelang_npu.cli.files import read_text, write_text
from tilelang_npu.errors import TileError
from tilelang_npu.language import stubs
from tilelang_npu.language.elements import TOKENS
from tilelang_npu.runtime.jit import factory
from tilelang_npu.runtime.jit.jit_kernel import JITKernel
from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
from tilelang_npu.runtime.settings.jit_settings import Settings

__all__ = ["GROUPS", "MARK", "references", "write"]

MARK = "<!-- Below: made from the docstrings by `tilelang-npu ops --language docs/language`. -->\n"
"""The mark: the line of a page after which the text is generated."""
GROUPS: dict[str, tuple[str, ...]] = {
    "kernels": ("functions", "launch.Kernel", "eager", "symbols", "types"),
    "loops": ("launch", "threads"),
    "buffers": ("allocate",),
    "moving": ("movement", "cube_moves", "patches"),
    "products": ("matrix", "dequantise"),
    "elementwise": ("vector",),
    "reductions": ("reduction", "reducers"),
    "structured": ("structured",),
    "repeats": ("repeats",),
    "scalars": ("scalar", "logical", "elements"),
    "order": ("sync", "swizzle"),
    "looking": ("debug", "structured.npuir_print"),
    "gpu": ("gpu_hints", "layouts"),
    "host": (),
}
"""For each page, the modules of the language (or single functions, as ``module.function``) that the page describes."""


def write(folder: Path) -> list[Path]:
    """Writes the generated part of each page after its mark, and returns the paths of the pages.

    Raises:
        TileError: T801, the folder has no such page, or the page has no mark.
    """
    written = []
    for group, text in references().items():
        page = folder / f"{group}.md"
        above, mark, _ = read_text(str(page)).partition(MARK)
        if not mark:
            raise TileError(f"{page} has no mark after which it is generated", code="T801",
                            help=f"add this line: {MARK.strip()}")
        write_text(str(page), f"{above}{MARK}\n{text}")
        written.append(page)
    return written


def references() -> dict[str, str]:
    """Returns the generated part of each page, by the page's name."""
    sections: dict[str, list[str]] = {group: [] for group in GROUPS}
    for names, value in _functions():
        sections[_section(names[0], value)].append(_entry(names, value))
    tokens = ", ".join(f"`T.{name}`" for name in sorted(TOKENS))
    sections["scalars"].append(
        f"## Element types\n\n{tokens}: each is a string, an annotation (`n: T.int32`) and a cast (`T.float32(x)`).\n")
    sections["host"] = list(_host())
    return {group: "\n".join(parts) for group, parts in sections.items()}


def _host() -> Iterator[str]:
    """Yields the sections about functions that make kernels, their settings, and the members of a kernel."""
    yield _described("`tilelang.jit`, `tilelang.compile`", inspect.getdoc(factory.jit))
    yield _described("Arguments of `jit` and `compile`", inspect.getdoc(Settings))
    yield _described("`JITKernel`", inspect.getdoc(JITKernel))
    for name, member in (*vars(CompiledKernel).items(), *vars(JITKernel).items()):
        if (not name.startswith("_") and not isinstance(member, bool)) or name == "__call__":
            call = "kernel" if name == "__call__" else f"kernel.{name}"
            yield _described(f"`{call}{_given(member)}`", inspect.getdoc(member))


def _given(member: object) -> str:
    """Returns the parameters of a method after ``self``, as text; empty for an attribute."""
    if not isinstance(member, FunctionType):
        return ""
    signature = inspect.signature(inspect.unwrap(member))
    return f"({stubs.parameters(signature.replace(parameters=[*signature.parameters.values()][1:]))})"


def _described(heading: str, doc: str | None) -> str:
    return f"## {heading}\n\n{_text(doc or '')}"


def _functions() -> Iterator[tuple[list[str], Callable[..., object]]]:
    """Yields each function of ``T`` once, with all its names."""
    found: dict[object, tuple[list[str], Callable[..., object]]] = {}
    for name, value in stubs.callables().items():
        if name in TOKENS or name in ("dtype", *stubs.BUFFERS):
            continue
        made = inspect.unwrap(value)
        key = _body(made) if made.__module__.rpartition(".")[2] in ("vector", "structured", "repeats") else made
        found.setdefault(key, ([], made))[0].append(name)
    yield from found.values()


def _body(made: Callable[..., object]) -> tuple[str, str]:
    """Returns an object that is equal for names of the same operation: the function's signature and docstring."""
    return re.sub(r"T\.[\w.]+\(", "(", made.__doc__ or ""), str(inspect.signature(made))


def _section(name: str, value: Callable[..., object]) -> str:
    module = value.__module__.rpartition(".")[2]
    for home in (f"{module}.{name}", module):
        for group, homes in GROUPS.items():
            if home in homes:
                return group
    raise LookupError(f"{module}.{name}")


def _entry(names: list[str], value: Callable[..., object]) -> str:
    """Returns the section about a function: its names, its signatures and its docstring."""
    parameters = stubs.parameters(inspect.signature(value))
    calls = "\n".join(f"T.{name}({parameters})" for name in names)
    several = parameters.startswith(("*operands: Any", "*arguments"))  # the docstring has the forms
    code = "" if several else f"```pyi\n{calls}\n```\n\n"
    return f"## {', '.join(f'`T.{name}`' for name in names)}\n\n{code}{_text(inspect.getdoc(value) or '')}"


def _text(doc: str) -> str:
    """Returns a docstring as Markdown."""
    text = re.sub(r"``(.+?)``", r"`\1`", doc)
    text = re.sub(r":(?:class|func|meth|mod):`(.+?)`", r"`\1`", text)
    return "\n".join(_paragraph(part) for part in text.split("\n\n"))


def _paragraph(text: str) -> str:
    """Returns a part of a docstring (a paragraph, or a list of arguments or errors) as Markdown."""
    first, _, rest = text.partition("\n")
    if first not in ("Args:", "Raises:", "Returns:", "Attributes:"):
        return f"{text}\n"
    items = re.sub(r"\n {4,}(?! )", "\n", "\n" + rest)
    lines = [re.sub(r"^(\*?\w[\w., ]*): ", r"- `\1`: ", line) for line in items.strip("\n").split("\n")]
    return "\n".join([first, "", *(line if line.startswith("- ") else f"  {line}" for line in lines), ""])

