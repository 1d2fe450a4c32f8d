"""The output of ``ops --markdown``: the page docs/ops.md, which is generated from the op table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilelang_npu import language, target
from tilelang_npu.language.unsupported import Unsupported
from tilelang_npu.ops import Composite, Elementwise, MemoryMove, Operation, Reduce, Structured, operations, rate_of

__all__ = ["names", "page"]

_HEAD = f"""\
# Operations

Made from the op table by `tilelang-npu ops --markdown`; a test compares this page with the table.

The prefix of a name fixes the order of its operands: `T.tile.add(dst, src0, src1)`, `T.vadd(src0, src1, dst)`. In the npuir
dialect operations on float32 take float16 and bfloat16 too: `legalise-types` casts around them. Roundings and special values
are in [precision.md](precision.md).

The cost of an instruction on R repeats of 256 bytes is a row of the chip's rate table: cycles until the result can be used,
here of {target.DEFAULT}, with the slope for elements of up to 16 bits and of more where they differ. A comma separates the rows
for buffers and for a scalar operand.
"""


def names(entry: Operation) -> list[str]:
    """Returns the names of the functions of ``T`` that apply an operation to buffers; empty if there is none."""
    if isinstance(entry, Reduce):
        return [entry.name]
    given = entry.aliases if entry.is_custom else (entry.name, *entry.aliases)
    return [name for name in dict.fromkeys(given) if _is_tile_function(name)]


def _is_tile_function(name: str) -> bool:
    home = language.tile if name.startswith("tile.") else language
    found = getattr(home, name.removeprefix("tile."))
    return not isinstance(found, Unsupported) and getattr(found, "__module__", "") != "tilelang_npu.language.scalar"


def page() -> str:
    """Returns the page docs/ops.md as Markdown."""
    every = operations().values()
    parts = [_HEAD]
    parts += _section(
        "Elementwise", "Each is one HIVM op. `b` is a buffer, `s` a buffer or a scalar. *repeats*: an input may have size 1 "
        "where the destination has not. *in place*: the destination may be an input.",
        ("operation", "names under T", "operands", "element types", "pipe", "HIVM", "cost", "result"),
        (_elementwise(op) for op in every if isinstance(op, Elementwise) and not isinstance(op, Composite)))
    parts += _section(
        "Composites", "HIVM has no op for these: `expand-composites` replaces them by other operations, whose costs add up. A "
        "composite with a cost is an instruction: where its buffers have one type and shape and its scalars are scalars, it is "
        "not expanded, but becomes `hivm.hir.custom` with its name as symbol, and is rounded as its steps are.",
        ("operation", "names under T", "element types", "steps", "cost", "result"),
        (_composite(op) for op in every if isinstance(op, Composite)))
    parts += _section(
        "Reductions", "Along axes of a tile. With `clear=False` the result is combined with the contents of the destination.",
        ("operation", "names under T", "element types", "pipe", "HIVM", "cost", "combined by", "result"),
        (_reduction(op) for op in every if isinstance(op, Reduce)))
    parts += _section(
        "Moving, scanning, sorting, making",
        "Operations whose HIVM op is `custom` are `hivm.hir.custom` with the operation's name as symbol.",
        ("operation", "names under T", "element types", "pipe", "HIVM", "cost", "result"),
        (_structured(op) for op in every if isinstance(op, Structured)))
    return "\n".join(parts)


def _section(title: str, text: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"## {title}", "", text, "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def _names(entry: Operation) -> str:
    return " ".join(f"`{name}`" for name in names(entry)) or "none yet"


def _types(entry: Operation) -> str:
    return " ".join(kind.mlir for kind in entry.dtypes)


def _rate(row: str) -> str:
    rate = rate_of(target.chip(target.DEFAULT), row)
    slopes = f"{rate.slope16:g} R" if rate.slope16 == rate.slope32 else f"({rate.slope16:g} or {rate.slope32:g}) R"
    return f"`{row}` {rate.fixed:g} + {slopes}"


def _cost(entry: Operation) -> str:
    if isinstance(entry, MemoryMove):
        return f"path `{entry.path}`"
    scalar = entry.cost + "s"
    both = isinstance(entry, Elementwise) and entry.scalar and scalar in target.chip(target.DEFAULT).vector
    return ", ".join(map(_rate, [entry.cost, scalar] if both else [entry.cost]))


def _elementwise(entry: Elementwise) -> tuple[str, ...]:
    marks = ["s" if position in entry.scalar else "b" for position in range(entry.inputs)]
    facts = [" ".join(f"`{mark}`" for mark in marks)]
    facts += ["repeats"] if entry.broadcast else []
    facts += ["in place"] if entry.in_place else []
    result = {"same": "", "bool": " Into bool or int8.", "any": " Into another element type."}[entry.result]
    return (f"`{entry.name}`", _names(entry), ", ".join(facts), _types(entry), entry.pipe, f"`{entry.hivm}`", _cost(entry),
            entry.doc + result)


def _composite(entry: Composite) -> tuple[str, ...]:
    steps = "; ".join(
        f"{step.target} = {step.op}({', '.join(part if isinstance(part, str) else f'{part:g}' for part in step.operands)})"
        for step in entry.expansion)
    return f"`{entry.name}`", _names(entry), _types(entry), f"`{steps}`", _cost(entry) if entry.instruction else "", entry.doc


def _reduction(entry: Reduce) -> tuple[str, ...]:
    return (f"`{entry.name}`", _names(entry), _types(entry), entry.pipe, f"`{entry.hivm} <{entry.mode}>`", _cost(entry),
            f"`{entry.combine}`", entry.doc)


def _structured(entry: Structured) -> tuple[str, ...]:
    return f"`{entry.name}`", _names(entry), _types(entry), entry.pipe, f"`{entry.hivm}`", _cost(entry), entry.doc
