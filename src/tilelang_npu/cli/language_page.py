"""The output of ``ops --language DIR``: the reference part of the pages docs/language/*.md, one page for each group of
functions.

Each page has a line that is its mark. The part above the mark, with an example, is written by hand. The part below is generated
from the docstrings: on most pages the functions of ``T``, and on the last page the host functions and the members of a kernel.

A function with several names has one section, under the name to use; the other names are listed there. The section of an
operation of the op table ends with its HIVM op, its pipe and its cycles.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FunctionType

from tilelang_npu import target
from tilelang_npu.cli import operations_page
from tilelang_npu.cli.files import read_text, write_text
from tilelang_npu.errors import TileError
from tilelang_npu.language import stubs, vmi
from tilelang_npu.language.elements import TOKENS
from tilelang_npu.ops import Composite, Elementwise, MemoryMove, Operation, operation, rate_of
from tilelang_npu.runtime.jit import factory
from tilelang_npu.runtime.jit.jit_kernel import JITKernel
from tilelang_npu.runtime.kernel.compiled_kernel import CompiledKernel
from tilelang_npu.runtime.settings.jit_settings import Settings
from tilelang_npu.target.chip_data import REPEAT_BYTES

__all__ = ["GROUPS", "MARK", "references", "write"]

MARK = "<!-- Below: made from the docstrings by `tilelang-npu ops --language docs/language`. -->\n"
"""The mark: the line of a page after which the text is generated."""
EXAMPLE_ROWS, EXAMPLE_COLUMNS = 32, 128
"""The tile for which the cycles of an operation are given as an example."""
GROUPS: dict[str, tuple[str, ...]] = {
    "kernels": ("functions", "launch.Kernel", "eager", "symbols", "types"),
    "loops": ("launch", "threads"),
    "buffers": ("allocate",),
    "moving": ("movement", "cube_moves", "patches", "atomic_mode", "safe_values"),
    "products": ("matrix", "block_scaled", "dequantise"),
    "elementwise": ("vector",),
    "reductions": ("reduction", "reducers"),
    "structured": ("structured",),
    "repeats": ("repeats",),
    "scalars": ("scalar", "logical", "elements"),
    "order": ("sync", "swizzle", "signals"),
    "looking": ("debug", "structured.npuir_print"),
    "gpu": ("gpu_hints", "layouts"),
    "registers": ("vmi", "launch.SimdVF", "launch.SimtVF", "allocate.alloc_frag"),
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


def preferred(names: Sequence[str]) -> str:
    """Returns the name to use among the names of one function.

    ``npuir_add``, ``vadd`` and ``add`` are one function. The vector operations on tiles are ``vadd``, ``vexp``, ..., as ``exp``
    without the prefix computes on numbers; of other functions the name without a prefix is the one to use.
    """
    plain = [name for name in names if not name.startswith("npuir_")] or list(names)
    vector = [name for name in plain if name.startswith("v") and (name[1:] in names or f"npuir_{name[1:]}" in names)]
    if vector and isinstance(_operation(vector[0]), Elementwise):
        return vector[0]
    return min((name for name in plain if name not in vector), key=len, default=plain[0])


def _functions() -> Iterator[tuple[list[str], Callable[..., object]]]:
    """Yields each function of ``T`` once, with all its names."""
    found: dict[object, tuple[list[str], Callable[..., object]]] = {}
    registers = {f"vmi.{name}": getattr(vmi, name) for name in sorted(vmi.NAMES)}
    for name, value in (stubs.callables() | registers).items():
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
    """Returns the section about a function: the name to use, its signature, other names, its docstring, and its costs."""
    name = preferred(names)
    parameters = stubs.parameters(inspect.signature(value))
    several = parameters.startswith(("*operands: Any", "*arguments"))  # the docstring has the forms
    code = "" if several else f"```pyi\nT.{name}({parameters})\n```\n\n"
    others = ", ".join(f"`T.{other}`" for other in names if other != name)
    also = f"Other names: {others}.\n\n" if others else ""
    doc = inspect.getdoc(value) or ""
    for other in names:
        doc = re.sub(rf"(?<=Example: ``)T\.{re.escape(other)}\(", f"T.{name}(", doc)
    return f"## `T.{name}`\n\n{code}{also}{_text(doc)}{_costs(name)}"


def _operation(name: str) -> Operation | None:
    """Returns the entry of the op table that has a name; None if there is none."""
    try:
        return operation(name)
    except KeyError:
        return None


def _costs(name: str) -> str:
    """Returns the lines on the HIVM op, the pipe and the cycles of a function that is an operation of the op table."""
    entry = _operation(name)
    if entry is None or name not in operations_page.names(entry):
        return ""
    if isinstance(entry, Composite) and not entry.instruction:
        steps = ", ".join(f"`{step.op}`" for step in entry.expansion)
        return f"\nHIVM: the operation{'s' if len(entry.expansion) > 1 else ''} {steps}.\n"
    custom = entry.is_custom or isinstance(entry, Composite)
    where = f"`hivm.hir.custom` with the symbol `{entry.symbol or entry.name}`" if custom else f"`hivm.hir.{entry.hivm}`"
    if isinstance(entry, MemoryMove):
        return f"\nHIVM: {where}, on the path `{entry.path}`.\n"
    chip = target.chip(target.DEFAULT)
    rate = rate_of(chip, entry.cost)
    slopes = f"({rate.slope16:g} or {rate.slope32:g}) R" if rate.slope16 != rate.slope32 else _times_repeats(rate.slope32)
    widths = ", for elements of up to 16 bits or of more" if rate.slope16 != rate.slope32 else ""
    formula = f"{rate.fixed:g} + {slopes} for R repeats of {REPEAT_BYTES} bytes{widths}"
    if not isinstance(entry, Elementwise):  # rounds of a sort, steps of a scan or a reduction: see the cost model
        return f"\nHIVM: {where} on pipe {entry.pipe}. Cycles of each of its instructions on {chip.name}: {formula}.\n"
    cycles = rate.fixed + rate.slope32 * (EXAMPLE_ROWS * EXAMPLE_COLUMNS * 4 // REPEAT_BYTES)
    return (f"\nHIVM: {where} on pipe {entry.pipe}. Cycles on {chip.name}: {formula}; {EXAMPLE_ROWS} x {EXAMPLE_COLUMNS} "
            f"float32: {cycles:g}.\n")


def _times_repeats(slope: float) -> str:
    return "R" if slope == 1 else f"{slope:g} R"


def _text(doc: str) -> str:
    """Returns a docstring as Markdown."""
    text = re.sub(r"``(.+?)``", lambda found: f"`{' '.join(found[1].split())}`", doc, flags=re.DOTALL)
    text = re.sub(r":(?:class|func|meth|mod):`(.+?)`", r"`\1`", text)
    return "\n".join(_paragraph(part) for part in text.split("\n\n"))


def _paragraph(text: str) -> str:
    """Returns a part of a docstring (a paragraph, or a list of arguments or errors) as Markdown."""
    first, _, rest = text.partition("\n")
    if first not in ("Args:", "Raises:", "Returns:", "Attributes:"):
        return f"{text}\n"
    items = [line.removeprefix("    ") for line in rest.strip("\n").split("\n")]
    if first != "Returns:":
        items = [f"  {item.lstrip()}" if item.startswith(" ") else re.sub(r"^(\*?\w[\w., ]*): ", r"- `\1`: ", item)
                 for item in items]
    return "\n".join([first, "", *items, ""])
