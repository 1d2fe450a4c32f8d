"""The attributes of HIVM other than enums, and functions that return common attributes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, MemRefType, UnrankedMemRefType, i1, i64
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tilelang_npu.dialects.hivm.enums import ENUMS, AddressSpaceAttr, EventAttr, PipeAttr
from tilelang_npu.dialects.ir.attribute_kinds import MarkerAttr, NumberAttr, TextAttr, define_attributes, parse_reference
from tilelang_npu.dialects.ir.declaration import fail
from tilelang_npu.target.chip_data import PipeName, Space

__all__ = [
    "ATTRIBUTES", "BlockAttr", "DataLayoutAttr", "RemainInL0CAttr", "SyncEventSlotAttr", "TightlyCoupledBufferAttr",
    "address_space", "event", "pipe", "space_of",
]

LAYOUTS: dict[str, int] = {
    name: number for number, name in enumerate(
        ("dotA_ND", "dotB_ND", "dotC_ND", "nZ", "zN", "ND", "Fractal", "NCHW", "NC1HWC0", "C1HWNC0", "SCALEA_ND", "SCALEB_DN",
         "SCALEA_zZ", "SCALEB_nN"), 1)
}
"""The data layouts by name, each with the integer by which the toolchain encodes the layout."""


class DataLayout(NamedTuple):
    """The contents of a :class:`DataLayoutAttr`.

    Attributes:
        name: the name of the layout, a key of ``LAYOUTS``.
        transpose: whether the matrix is transposed; None if the attribute does not state it.
        fractal_sizes: the sizes of the fractal blocks; None if the attribute does not state them.
    """

    name: str
    transpose: bool | None = None
    fractal_sizes: tuple[int, ...] | None = None


@irdl_attr_definition
class DataLayoutAttr(Data[DataLayout]):
    """The layout of a matrix in memory: ``#hivm.data_layout<dotA_ND, transpose = false>``."""

    name = "hivm.data_layout"

    def __init__(self, layout: str | DataLayout, transpose: bool | None = None,
                 fractal_sizes: tuple[int, ...] | None = None) -> None:
        super().__init__(layout if isinstance(layout, DataLayout) else DataLayout(layout, transpose, fractal_sizes))

    def verify(self) -> None:
        fault = _layout_fault(self.data)
        if fault:
            fail(fault)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> DataLayout:
        reference = parse_reference(parser, cls)
        if reference is not None:
            return reference.data
        start = parser.pos
        name = parser.parse_identifier()
        transpose: bool | None = None
        sizes: tuple[int, ...] | None = None
        while parser.parse_optional_punctuation(",") is not None:
            key = parser.parse_identifier()
            parser.parse_punctuation("=")
            if key == "transpose" and transpose is None:
                transpose = parser.parse_boolean()
            elif key == "fractalSizes" and sizes is None:
                sizes = tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))
            else:
                parser.raise_error(f"unexpected or repeated parameter '{key}' of #hivm.data_layout", start, parser.pos)
        layout = DataLayout(name, transpose, sizes)
        fault = _layout_fault(layout)
        if fault:
            parser.raise_error(fault, start, parser.pos)
        parser.parse_punctuation(">")
        return layout

    def print_parameter(self, printer: Printer) -> None:
        name, transpose, sizes = self.data
        text = name
        if transpose is not None:
            text += f", transpose = {str(transpose).lower()}"
        if sizes is not None:
            text += f", fractalSizes = [{', '.join(map(str, sizes))}]"
        printer.print_string(f"<{text}>")


def _layout_fault(layout: DataLayout) -> str:
    if layout.name not in LAYOUTS:
        return f"expected #hivm.data_layout to be one of: {', '.join(LAYOUTS)}; found '{layout.name}'"
    if layout.name in ("dotA_ND", "dotB_ND"):
        if layout.transpose is None:
            return "'transpose' must be set if data layout is DOTA_ND or DOTB_ND"
    elif layout.name != "ND" and layout.transpose is not None:
        return "'transpose' is only valid if data layout is DOTA_ND or DOTB_ND or ND like"
    return ""


class Slot(NamedTuple):
    """The contents of a :class:`SyncEventSlotAttr`.

    Attributes:
        set_pipe: the pipe that sets the event; None if the attribute names no pipes.
        wait_pipe: the pipe that waits for the event; None if the attribute names no pipes.
        mode: whether the op waits for the event (``wait``), sets it (``set``), or does both itself (``internal``).
        event: the event, such as ``EVENT_ID1``; None if the attribute does not state it.
    """

    set_pipe: str | None = None
    wait_pipe: str | None = None
    mode: str = "internal"
    event: str | None = None


@irdl_attr_definition
class SyncEventSlotAttr(Data[Slot]):
    """An event that a ``custom_macro`` op waits for, sets, or uses internally.

    An example is ``<#hivm.pipe<PIPE_V>, #hivm.pipe<PIPE_S>, wait, <EVENT_ID1>>``.
    """

    name = "hivm.sync_event_slot"

    def __init__(self, set_pipe: PipeName | Slot | None = None, wait_pipe: PipeName | None = None, mode: str = "internal",
                 event: int | str | None = None) -> None:
        super().__init__(set_pipe if isinstance(set_pipe, Slot) else Slot(
            None if set_pipe is None else PipeAttr(set_pipe).data,
            None if wait_pipe is None else PipeAttr(wait_pipe).data,
            mode,
            None if event is None else EventAttr(str(event)).data,
        ))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Slot:
        with parser.in_angle_brackets():
            mode = _parse_slot_mode(parser)
            if mode is not None:
                if mode != "internal":
                    parser.raise_error("macro_sync without pipes is only supported for `internal`")
                return Slot(event=EventAttr.parse_parameter(parser) if parser.parse_optional_punctuation(",") else None)
            set_pipe = _parse_slot_pipe(parser)
            parser.parse_punctuation(",")
            wait_pipe = _parse_slot_pipe(parser)
            event = None
            if parser.parse_optional_punctuation(",") is not None:
                mode = _parse_slot_mode(parser)
                if mode is None or parser.parse_optional_punctuation(",") is not None:
                    event = EventAttr.parse_parameter(parser)
            return Slot(set_pipe, wait_pipe, mode or "internal", event)

    def print_parameter(self, printer: Printer) -> None:
        slot = self.data
        parts: list[str] = []
        if slot.set_pipe is None:
            parts.append(slot.mode)
        else:
            parts += [f"#hivm.pipe<{slot.set_pipe}>", f"#hivm.pipe<{slot.wait_pipe}>"]
            if slot.mode != "internal" or slot.event is not None:
                parts.append(slot.mode)
        if slot.event is not None:
            parts.append(f"<{slot.event}>")
        printer.print_string(f"<{', '.join(parts)}>")


def _parse_slot_mode(parser: AttrParser) -> str | None:
    for word in ("wait", "set", "internal"):
        if parser.parse_optional_keyword(word) is not None:
            return word
    return None


def _parse_slot_pipe(parser: AttrParser) -> str:
    position = parser.pos
    attribute = parser.parse_attribute()
    if not isinstance(attribute, PipeAttr):
        parser.raise_error("expected #hivm.pipe<...>", position, parser.pos)
    return attribute.data


@irdl_attr_definition
class BlockAttr(Data[int]):
    """Maps the iterations of a loop to the blocks of a launch: ``#hivm.block`` or ``#hivm.block<linear_dim = 0>``.

    ``data`` is the ``linear_dim``; -1 if the text does not state it.
    """

    name = "hivm.block"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> int:
        if parser.parse_optional_punctuation("<") is None:
            return -1
        parser.parse_keyword("linear_dim")
        parser.parse_punctuation("=")
        dimension = parser.parse_integer(allow_boolean=False, allow_negative=False)
        parser.parse_punctuation(">")
        return dimension

    def print_parameter(self, printer: Printer) -> None:
        if self.data >= 0:
            printer.print_string(f"<linear_dim = {self.data}>")


@irdl_attr_definition
class TightlyCoupledBufferAttr(Data[int]):
    """The number of a buffer that the Cube and the Vector core of a 950 share: ``#hivm.tightly_coupled_buffer<3>``.

    ``data`` is the number; -1 if the text does not state it.
    """

    name = "hivm.tightly_coupled_buffer"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> int:
        with parser.in_angle_brackets():
            number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
            return -1 if number is None else number

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<>" if self.data < 0 else f"<{self.data}>")


@irdl_attr_definition
class RemainInL0CAttr(NumberAttr):
    """The index of the op result that stays in L0C: ``#hivm.remain_in_l0c<0>``."""

    name = "hivm.remain_in_l0c"


MARKERS = define_attributes(MarkerAttr, "hivm", (
    "part_of_mix", "allow_flatten", "storage_aligned", "enable_saving_ub", "disable_size_align_for_cast", "multi_buffer",
    "cv_pipelined_multi_buffer", "stride_align_dims", "stride_align_value_in_byte", "skip_stride_align_for_vload",
    "alloc_align_dims", "alloc_align_value_in_byte", "func_dyn_memref_args", "vector_function", "insert_slice_source_index",
    "parallel_loop", "unlikely_condition", "disable_auto_inject_block_sync", "sync_block_lock_with_subblock",
    "sync_block_lock_unordered", "tile_mix_cube_num", "preload_num", "max_preload_num", "preload_workspace",
    "preload_local_buffer", "is_distributed", "backup_function", "has_alias_scopes", "mem_unique", "shared_memory",
    "matmul_limited_in_cube", "inserted-tensor", "inserted-copy", "inserted-load", "inserted-store", "inserted-fixpipe"),
    "``#{}``: an attribute without contents, of which only the presence counts.")
"""The attributes without contents. Most ops have an attribute of such a name, with a unit or an integer as the value."""

BITCODES = define_attributes(TextAttr, "hivm", (
    "aic_bitcode", "aiv_bitcode", "mix_aic_bitcode", "mix_aiv_bitcode", "host_bitcode"),
    "The path of a bitcode file: ``#{}<\"path\">``.")

ATTRIBUTES: tuple[type[Attribute], ...] = (
    *ENUMS, DataLayoutAttr, SyncEventSlotAttr, BlockAttr, TightlyCoupledBufferAttr, RemainInL0CAttr, *BITCODES, *MARKERS)


def address_space(name: Space) -> AddressSpaceAttr:
    """Returns the memory space of memref types for the name ``gm``, ``cbuf``, ``ca``, ``cb``, ``cc`` or ``ub``."""
    attribute: AddressSpaceAttr = _address_space(name)
    return attribute


def pipe(name: PipeName) -> PipeAttr:
    """Returns the attribute of a pipe: ``S``, ``V``, ``M``, ``MTE1``, ``MTE2``, ``MTE3``, ``FIX`` or ``ALL``."""
    attribute: PipeAttr = _pipe(name)
    return attribute


_address_space, _pipe = cache(AddressSpaceAttr), cache(PipeAttr)  # a cached function itself accepts arguments of any type


@cache
def event(number: int) -> EventAttr:
    """Returns the attribute of the event with a number from 0 to 7."""
    return EventAttr(str(number))


def space_of(type_: Attribute) -> Space | None:
    """Returns the HIVM memory space of a memref type: ``gm``, ``cbuf``, ``ca``, ``cb``, ``cc`` or ``ub``.

    Returns None for any other type, and for a memref without a HIVM memory space.
    """
    if isinstance(type_, (MemRefType, UnrankedMemRefType)) and isinstance(type_.memory_space, AddressSpaceAttr):
        return type_.memory_space.short
    return None


def boolean(value: bool) -> BoolAttr:
    """Returns a bool as an i1 attribute."""
    return IntegerAttr(int(value), i1)


def integers(values: Sequence[int]) -> DenseArrayBase:
    """Returns a list of integers as a dense i64 array attribute."""
    return _integers(tuple(values))


@lru_cache(1024)
def _integers(values: tuple[int, ...]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, values)
