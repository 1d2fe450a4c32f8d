"""Ops of the scalar unit, and views: block indices, control registers, casts of addresses and layouts, debug output."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    TensorType,
    UnrankedTensorType,
    VectorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from tilelang_npu.dialects.hivm.attributes import DataLayoutAttr, boolean, integers, space_of
from tilelang_npu.dialects.hivm.enums import (
    AddressSpaceAttr,
    AtomicKindAttr,
    CoreType,
    CoreTypeAttr,
    DataCacheKindAttr,
    DCCIModeAttr,
)
from tilelang_npu.dialects.hivm.traits import BOOL, I64_ARRAY, NUMBER, axes
from tilelang_npu.dialects.ir.declaration import (
    DialectOp,
    OfClass,
    Operand,
    TableOp,
    define_op,
    fail,
    operation,
    writes_older_text,
)
from tilelang_npu.dialects.ir.destination_style import MEMREF, TENSOR_OR_MEMREF
from tilelang_npu.dialects.ir.mlir_dtypes import element_type
from tilelang_npu.dialects.mlir.rules import may_have_same_shape
from tilelang_npu.target.chip_data import OpCore, Space

__all__ = [
    "SUB_BLOCKS",
    "BitcastOp",
    "ConvertLayoutOp",
    "DCCIOp",
    "DebugOp",
    "FinishDebugOp",
    "GetBlockIdxOp",
    "GetBlockNumOp",
    "GetSubBlockIdxOp",
    "GetSubBlockNumOp",
    "GetSysCntOp",
    "InitDebugOp",
    "LoadScalarOp",
    "MultiBufferCounterOp",
    "PointerCastOp",
    "SetAtomicOp",
    "SetCtrlOp",
    "SetFftsBaseAddrOp",
    "SetMaskNormOp",
    "sub_blocks_of",
]

SCALAR = OfClass((IntegerType, AnyFloat), "integer or floating-point")
PRINTABLE = OfClass((IntegerType, AnyFloat, *TENSOR_OR_MEMREF.classes), "scalar, tensor or memref")


class _QueryOp(DialectOp):
    """Base of the ops that return an i64 which describes the core that executes them."""

    result = result_def(i64)
    assembly_format = "attr-dict `->` type($result)"

    def __init__(self) -> None:
        IRDLOperation.__init__(self, result_types=[i64])


@operation(pipes=("S",))
class GetBlockIdxOp(_QueryOp):
    """Returns the index of the block that executes the op."""

    name = "hivm.hir.get_block_idx"
    traits = traits_def(Pure())


@operation(pipes=("S",))
class GetBlockNumOp(_QueryOp):
    """Returns the number of blocks of the launch."""

    name = "hivm.hir.get_block_num"
    traits = traits_def(Pure())


SUB_BLOCKS = "sub_blocks"
"""The name of the function attribute that gives the number of Vector cores of a block; without it the number is two."""


def sub_blocks_of(op: Operation, default: int = 2) -> int:
    """Returns the number of Vector cores of a block, as the attribute ``SUB_BLOCKS`` of the function around an op states it.

    Returns ``default`` if the function has no such attribute.
    """
    function: Operation | None = op
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    stated = None if function is None else function.attributes.get(SUB_BLOCKS)
    return stated.value.data if isinstance(stated, IntegerAttr) else default


@operation(pipes=("S",))
class GetSubBlockIdxOp(_QueryOp):
    """Returns the index, from 0, of the Vector core among the Vector cores of its block."""

    name = "hivm.hir.get_sub_block_idx"
    traits = traits_def(Pure())


@operation(pipes=("S",))
class GetSubBlockNumOp(_QueryOp):
    """Returns the number of Vector cores of a block."""

    name = "hivm.hir.get_sub_block_num"
    traits = traits_def(Pure())


@operation(pipes=("S",), side_effects=True)
class GetSysCntOp(_QueryOp):
    """Returns the system counter, which counts up as time passes."""

    name = "hivm.hir.get_sys_cnt"


@operation(pipes=("S",), side_effects=True)
class MultiBufferCounterOp(DialectOp):
    """Returns the number of the current iteration of the enclosing loop, which selects the slot of a multi-buffer."""

    name = "hivm.hir.multi_buffer_counter"
    counter = result_def(i64)
    assembly_format = "attr-dict `->` type($counter)"

    def __init__(self) -> None:
        IRDLOperation.__init__(self, result_types=[i64])


SetMaskNormOp = define_op(
    TableOp, "hivm.hir.set_mask_norm",
    "Selects the mode in which the masks of vector instructions are bit masks; kernels for 910B execute it at their start.",
    text="attr-dict", pipes=("S",), side_effects=True)
InitDebugOp = define_op(
    TableOp, "hivm.hir.init_debug", "Initialises debug output.", text="attr-dict", pipes=("S",), side_effects=True)
FinishDebugOp = define_op(
    TableOp, "hivm.hir.finish_debug", "Flushes debug output.", text="attr-dict", pipes=("S",), side_effects=True)
SetCtrlOp = define_op(
    TableOp, "hivm.hir.set_ctrl", "Sets or clears the bit with the number ``idx`` of the control register.",
    properties={"enable": BOOL, "idx": NUMBER}, text="$enable `at` `ctrl` `` `[` $idx `]` attr-dict", pipes=("S",),
    side_effects=True)


@operation(pipes=("S",), side_effects=True)
class SetAtomicOp(DialectOp):
    """Makes the following stores combine their values with those in GM by the operation ``kind``.

    The kind ``none`` makes the following stores replace the values again.
    """

    name = "hivm.hir.set_atomic"
    kind = prop_def(AtomicKindAttr)
    type = opt_prop_def(OfClass((TypeAttribute,), "a type"))
    assembly_format = "`kind` `=` $kind `[` `type` `=` $type `]` attr-dict"

    def __init__(self, kind: str, type_: Attribute) -> None:
        """Builds the op.

        Args:
            kind: the word of an ``AtomicKindAttr``, such as ``add``, ``max`` or ``none``.
            type_: the element type of the stores.
        """
        IRDLOperation.__init__(self, properties={"kind": AtomicKindAttr(kind), "type": type_})


def follows_atomic_setting(op: Operation) -> bool:
    """Whether the last ``set_atomic`` before an op in the text has a kind other than ``none``.

    The stores of the op then combine their values with those in GM.
    """
    position: Operation | None = op
    while position is not None:
        previous = position.prev_op
        if previous is None:
            position = position.parent_op()
            continue
        position = previous
        setting = _last_setting(previous)
        if setting is not None:
            return setting.kind.data != "none"
    return False


def _last_setting(op: Operation) -> SetAtomicOp | None:
    """The op itself if it is a ``set_atomic``, else the last one in its regions: a setting in a loop holds after the loop."""
    if type(op) is SetAtomicOp:  # isinstance of an abstract class is slow
        return op
    for region in reversed(op.regions):
        for block in reversed(region.blocks):
            inner = block.last_op
            while inner is not None:
                found = _last_setting(inner)
                if found is not None:
                    return found
                inner = inner.prev_op
    return None


def _verify_gm_address(op: TableOp) -> None:
    """Verifies that the address is a pointer into GM, an ``!llvm.ptr<1>``."""
    from xdsl.dialects.llvm import LLVMPointerType  # loads a large dialect, which few kernels need

    type_ = op.addr.type
    if not isinstance(type_, LLVMPointerType):
        fail(f"operand #0 must be LLVM pointer type, but got '{type_}'")
    if str(type_) != "!llvm.ptr<1>":
        fail("expecting GM address")


LoadScalarOp = define_op(
    TableOp, "hivm.hir.load_scalar", "Reads a scalar at the address ``addr`` of GM, an ``!llvm.ptr<1>``.",
    operands={"addr": None}, results={"result": SCALAR}, text="attr-dict $addr `:` type($addr) `->` type($result)",
    reads=("addr",), pipes=("S",), side_effects=True, rules=(_verify_gm_address,))


@operation(pipes=("S",), untouched=("ptr",), side_effects=True)
class DCCIOp(DialectOp):
    """Writes one dirty line of the scalar unit's data cache, or all dirty lines, back to memory, and invalidates these lines.

    With the mode ``single_cache_line`` this is the line that contains the address ``ptr``; with ``all_cache_lines`` it is
    every line.
    """

    name = "hivm.hir.dcci"
    mode = prop_def(DCCIModeAttr)
    dataCacheKind = prop_def(DataCacheKindAttr)
    ptr = opt_operand_def(MEMREF)
    assembly_format = "attr-dict `(` $mode `,` $dataCacheKind (`,` $ptr^ `:` type($ptr))? `)`"

    def __init__(self, mode: str, kind: str, memory: Operand | None = None) -> None:
        """Builds the op.

        Args:
            mode: ``single_cache_line`` or ``all_cache_lines``.
            kind: the data cache: ``all``, ``ub``, ``out`` or ``atomic``.
            memory: the buffer whose cache line is written back, for a single line.
        """
        IRDLOperation.__init__(self, operands=[memory], properties={
            "mode": DCCIModeAttr(mode), "dataCacheKind": DataCacheKindAttr(kind)})


@operation(pipes=("S",), side_effects=True)
class SetFftsBaseAddrOp(DialectOp):
    """Sets the base address of the flags between cores."""

    name = "hivm.hir.set_ffts_base_addr"
    ffts_base_addr = operand_def(i64)
    assembly_format = "attr-dict $ffts_base_addr"

    def __init__(self, address: Operand) -> None:
        IRDLOperation.__init__(self, operands=[address])


@operation()
class PointerCastOp(DialectOp):
    """Returns the buffer at a byte address of a memory; several addresses are the slots of a multi-buffer."""

    name = "hivm.hir.pointer_cast"
    addrs = var_operand_def(i64)
    dynamicSizes = var_operand_def(IndexType())
    result = result_def(MEMREF)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = "`(` $addrs `)` (`[` $dynamicSizes^ `]`)? attr-dict `:` type($result)"

    def __init__(self, addresses: Sequence[Operand], type_: MemRefType, dynamic_sizes: Sequence[Operand] = ()) -> None:
        """Builds the op.

        Args:
            addresses: the byte address of the buffer, or of each slot of a multi-buffer, as i64 values.
            type_: the type of the buffer, which states its memory.
            dynamic_sizes: one index value per dynamic axis.
        """
        IRDLOperation.__init__(self, operands=[list(addresses), list(dynamic_sizes)], result_types=[type_])

    def verify_(self) -> None:
        if not self.addrs:
            fail("addrs of PointerCastOp should not be empty!")
        assert isinstance(self.result.type, MemRefType)
        expected = self.result.type.get_shape().count(DYNAMIC_INDEX)
        if len(self.dynamicSizes) != expected:
            fail(f"expected {expected} dynamic size operands, but found {len(self.dynamicSizes)}")


@operation()
class BitcastOp(DialectOp):
    """Reinterprets the bits of a value as another element type; the shape stays the same."""

    name = "hivm.hir.bitcast"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$src `:` type($src) `->` type($result) attr-dict"

    def __init__(self, src: Operand, type_: Attribute) -> None:
        IRDLOperation.__init__(self, operands=[src], result_types=[type_])

    def verify_(self) -> None:
        if not may_have_same_shape(self.src.type, self.result.type):
            fail("requires the same shape for all operands and results")
        values = (TensorType, UnrankedTensorType, VectorType)
        mapped = [isinstance(type_, values) for type_ in (self.src.type, self.result.type)]
        if mapped[0] and not mapped[1]:
            fail("if an operand is non-scalar, then there must be at least one non-scalar result")
        if mapped[1] and not mapped[0]:
            fail("if a result is non-scalar, then at least one operand must be non-scalar")


@irdl_custom_directive
class OutputShape(CustomDirective):
    """Parses and prints the clause ``output_shape [8, %n]``, which the syntax of v1.0.0 does not have."""

    dynamic: VariadicOperandVariable
    static: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        values: list[int] = []
        self.dynamic.set(state, ())
        if parser.parse_optional_keyword("output_shape") is not None:
            operands = []
            for entry in parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE,
                    lambda: parser.parse_optional_unresolved_operand() or parser.parse_integer(allow_boolean=False)):
                values.append(entry if isinstance(entry, int) else DYNAMIC_INDEX)
                if not isinstance(entry, int):
                    operands.append(entry)
            self.dynamic.set(state, operands)
        self.static.set(state, integers(values))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if writes_older_text(printer):
            return
        dynamic = iter(self.dynamic.get(op))
        printer.print_string(" output_shape [")
        for place, size in enumerate(axes(op, "static_output_shape")):
            if place:
                printer.print_string(", ")
            if size == DYNAMIC_INDEX:
                printer.print_ssa_value(next(dynamic))
            else:
                printer.print_string(str(size))
        printer.print_string("]")
        state.should_emit_space = True
        state.last_was_punctuation = True


class _LayoutOp(TableOp):
    """Base of ``convert_layout``, which v1.0.0 writes without a shape."""

    def complete_parsed(self) -> None:
        """Sets the output shape from the result's type if the text does not state the shape."""
        type_ = self.result.type
        if not axes(self, "static_output_shape") and isinstance(type_, (MemRefType, TensorType)) and type_.has_static_shape():
            self.properties["static_output_shape"] = integers(type_.get_shape())


def _verify_layout(op: TableOp) -> None:
    """Verifies that source and result have the same element type, and that each dynamic size has an operand."""
    if element_type(op.source.type) != element_type(op.result.type):
        fail("requires the same element type for all operands and results")
    dynamic = axes(op, "static_output_shape").count(DYNAMIC_INDEX)
    if dynamic != len(op.output_shape):
        fail(f"expected {dynamic} dynamic dimensions but got {len(op.output_shape)}")


ConvertLayoutOp = define_op(
    _LayoutOp, "hivm.hir.convert_layout",
    "Returns the data of a buffer in another layout; ``output_shape`` gives the dynamic sizes.",
    operands={"source": TENSOR_OR_MEMREF, "output_shape*": IndexType()}, results={"result": TENSOR_OR_MEMREF},
    properties={"srcLayout": DataLayoutAttr, "dstLayout": DataLayoutAttr, "static_output_shape": I64_ARRAY},
    members={"traits": traits_def(Pure()), "custom_directives": (OutputShape,)},
    text="$source custom<OutputShape>($output_shape, $static_output_shape) attr-dict `:` `(` type($source) `)` `->`"
         " type($result)",
    rules=(_verify_layout,))


@operation(pipes=("S",), reads={"arg": "value"}, side_effects=True)
class DebugOp(DialectOp):
    """Prints a value, or asserts that it is not zero."""

    name = "hivm.hir.debug"
    debugtype = prop_def(StringAttr)
    prefix = prop_def(StringAttr)
    hex = prop_def(BOOL)
    arg = operand_def(PRINTABLE)
    tcoretype = opt_prop_def(CoreTypeAttr)
    memscope = opt_prop_def(AddressSpaceAttr)
    assembly_format = "attr-dict $arg `:` type($arg)"

    def __init__(self, value: Operand, *, kind: str = "print", prefix: str = "", hexadecimal: bool = False,
                 core: CoreType | None = None, space: Space | None = None) -> None:
        """Builds the op.

        Args:
            value: the scalar, tensor or buffer.
            kind: ``print`` or ``assert``.
            prefix: the text before the value.
            hexadecimal: whether integers are printed in hexadecimal.
            core: ``CUBE``, ``VECTOR``, ``CUBE_OR_VECTOR`` or ``CUBE_AND_VECTOR``.
            space: the memory space of the value.
        """
        IRDLOperation.__init__(self, operands=[value], properties={
            "debugtype": StringAttr(kind), "prefix": StringAttr(prefix), "hex": boolean(hexadecimal),
            "tcoretype": None if core is None else CoreTypeAttr(core),
            "memscope": None if space is None else AddressSpaceAttr(space)})

    def core(self) -> OpCore:
        """Returns the core that the op states, or else the core that owns the value's memory; ``either`` for scalars and GM."""
        if self.tcoretype is not None and self.tcoretype.data in ("CUBE", "VECTOR"):
            return "AIC" if self.tcoretype.data == "CUBE" else "AIV"
        space = space_of(self.arg.type)
        return "either" if space in (None, "gm") else "AIV" if space == "ub" else "AIC"


OPERATIONS = (
    GetBlockIdxOp, GetBlockNumOp, GetSubBlockIdxOp, GetSubBlockNumOp, GetSysCntOp, MultiBufferCounterOp,
    SetMaskNormOp, InitDebugOp, FinishDebugOp, SetCtrlOp, SetAtomicOp, LoadScalarOp, DCCIOp, SetFftsBaseAddrOp,
    PointerCastOp, BitcastOp, ConvertLayoutOp, DebugOp,
)
