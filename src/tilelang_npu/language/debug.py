"""``T.printf`` and ``T.dump_tensor``: print values while a kernel runs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language.operands import as_memory, element_count
from tilelang_npu.ops import DType
from tilelang_npu.traced.buffers import Addressable, Tile
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import number

__all__ = ["dump_tensor", "printf"]

_CONVERSION = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?(?P<kind>[diuxXoeEfFgGcsp%])")
_FLOATS = "eEfFgG"
_LARGEST = 0xFFFFFFFF


def printf(format_str: str, *args: object) -> None:
    r"""Print a text with numbers in it, like ``printf`` in C: ``T.printf("%d: %f\n", i, x)``.

    Every core that executes the statement prints, in the order of the simulation. No newline is added. A statement above
    ``with T.Kernel`` prints before the cores start their work, a statement below it prints after they have finished.

    Example: ``T.printf("row %d", row)``

    Args:
        format_str: the text. ``%d %i %u %x %X %o %c`` take integers, ``%e %f %g`` floats, ``%s`` Python strings.
        args: one value for each conversion.

    Raises:
        TileError: T110, the kind of a value does not match its conversion; T145, there are more or fewer values than
            conversions, or a conversion is not known.
    """
    what = "T.printf"
    builder = Builder.running(what)
    if not isinstance(format_str, str):
        raise TileError(f"{what}: the format is {format_str!r}", code="T145",
                        help="the first argument must be a string, which the values follow")
    text, given = _spelled(what, format_str, args)
    _emit(builder, what, lambda: tile.PrintfOp(text, [_scalar(builder, value) for value in given]))


def _spelled(what: str, text: str, args: Sequence[object]) -> tuple[str, list[object]]:
    """The format with the strings of ``%s`` filled in, and the remaining arguments."""
    found, rest, parts, end = [], list(args), [], 0
    for match in _CONVERSION.finditer(text):
        _plain(what, text[end:match.start()])
        parts.append(text[end:match.start()])
        end, kind = match.end(), match["kind"]
        if kind == "%":
            parts.append("%%")
            continue
        if not rest:
            raise TileError(f"{what}: {match.group()} has no argument", code="T145", help="give one argument per conversion")
        value = rest.pop(0)
        if kind == "s":
            if not isinstance(value, str):
                raise TileError(f"{what}: %s takes a text, not {value!r}", code="T110", help="use %d or %f for a number")
            parts.append((match.group() % value).replace("%", "%%"))
            continue
        if kind == "p" or isinstance(value, (Addressable, str)):
            shown = value.describe() if isinstance(value, Addressable) else repr(value)
            raise TileError(f"{what}: {match.group()} of {shown}", code="T110",
                            help="print an element, such as buf[0]; T.dump_tensor prints a buffer")
        found.append((match, value))
        parts.append(match.group())
    _plain(what, text[end:])
    parts.append(text[end:])
    if rest:
        raise TileError(f"{what}: {len(args)} arguments for {len(args) - len(rest)} conversions in {text!r}", code="T145",
                        help="give one argument per conversion")
    for match, value in found:
        _check_kind(what, match.group(), match["kind"], value)
    return "".join(parts), [value for _, value in found]


def _plain(what: str, text: str) -> None:
    if "%" in text:
        raise TileError(f"{what}: a conversion in {text!r} is not known", code="T145",
                        help="conversions are d i u x X o c, e f g, s; %% is a percent sign")


def _check_kind(what: str, conversion: str, kind: str, value: object) -> None:
    given = number(Builder.running(what), value)
    floats = isinstance(given, float) or (not isinstance(given, (bool, int)) and given.kind.is_float)
    if floats != (kind in _FLOATS):
        wanted = "a float" if kind in _FLOATS else "an integer"
        raise TileError(f"{what}: {conversion} takes {wanted}, and {'a float' if floats else 'an integer'} is given",
                        code="T110", help=f"use {'%f' if floats else '%d'}, or convert the value")


def _scalar(builder: Builder, value: object) -> SSAValue:
    given = number(builder, value)
    if isinstance(given, (bool, int, float)):
        given = builder.literal(given, DType("float32" if isinstance(given, float) else "int64"))
    return given.ssa(builder)


def dump_tensor(tensor: Tile, desc: int, dump_size: int, shape_info: Sequence[int] = ()) -> None:
    """Print the first ``dump_size`` elements of a buffer or a global tensor, in row-major order.

    All pipes of the core finish their work before the elements are printed.

    Example: ``T.dump_tensor(a, 1, 64, (8, 8))``

    Args:
        tensor: the buffer, slice or tensor.
        desc: a number that is printed with the elements, from 0 to 2**32 - 1.
        dump_size: the number of elements to print, a constant.
        shape_info: the shape in which the elements are printed; without it, they are printed in one row.

    Raises:
        TileError: T111, ``tensor`` has fewer than ``dump_size`` elements, or ``shape_info`` has another number of elements;
            T145, ``desc`` is not such a number.
    """
    what = "T.dump_tensor"
    builder = Builder.running(what)
    memory = as_memory(what, "the tensor", tensor)
    shape = [int(size) for size in shape_info]
    if isinstance(desc, bool) or not isinstance(desc, int) or not 0 <= desc <= _LARGEST:
        raise TileError(f"{what}: desc is {desc!r}", code="T145", help=f"desc must be an integer from 0 to {_LARGEST}")
    have = element_count(memory)
    counts = isinstance(dump_size, int) and not isinstance(dump_size, bool) and dump_size > 0
    if not counts or (have is not None and dump_size > have):
        problem = f"but {memory.describe()} has {have} elements" if counts else "which is not a positive constant"
        raise TileError(f"{what}: dump_size is {dump_size!r}, {problem}", code="T111",
                        help="dump_size must be a positive constant, and at most the number of elements")
    if shape and math.prod(shape) != dump_size:
        raise TileError(f"{what}: {dump_size} elements do not fill the shape {shape}", code="T111",
                        help=f"remove shape_info, or pass a shape with {dump_size} elements")
    _emit(builder, what, lambda: tile.DumpOp(memory.ssa(builder), desc, dump_size, shape))


def _emit(builder: Builder, what: str, make: Callable[[], Operation]) -> None:
    builder.in_every_core(lambda: builder.tile_op(make(), what))
