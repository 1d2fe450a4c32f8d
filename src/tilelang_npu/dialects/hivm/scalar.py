"""Scalars and the rest: who am I, control registers, casts of addresses and layouts, debug prints."""

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
    i1,
    i64,
)
from xdsl.dialects.utils.dynamic_index_list import split_dynamic_index_list
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
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
from tilelang_npu.dialects.hivm.enums import AddressSpaceAttr, AtomicKindAttr, CoreTypeAttr, DataCacheKindAttr, DCCIModeAttr
from tilelang_npu.dialects.hivm.structured import I64_ARRAY, MEMREF, TENSOR_OR_MEMREF, axes, fail
from tilelang_npu.dialects.ir.declaration import DialectOp, OfClass, element_type, operation, writes_older_text
from tilelang_npu.dialects.mlir.rules import fitting_shapes

Operand = SSAValue | Operation
BOOL = IntegerAttr.constr(i1)
SCALAR = OfClass((IntegerType, AnyFloat), "integer or floating-point")
PRINTABLE = OfClass((IntegerType, AnyFloat, *TENSOR_OR_MEMREF.classes), "scalar, tensor or memref")


class _QueryOp(DialectOp):
    """An op that reads an i64 of the core it runs on."""

    def __init__(self) -> None:
        IRDLOperation.__init__(self, result_types=[i64])

    def pipes(self) -> tuple[str, ...]:
        """The scalar unit."""
        return ("S",)


_QUERY = "attr-dict `->` type($result)"


@operation(pipes=("S",))
class GetBlockIdxOp(_QueryOp):
    """Number of this block."""

    name = "hivm.hir.get_block_idx"
    result = result_def(i64)
    traits = traits_def(Pure())
    assembly_format = _QUERY


@operation(pipes=("S",))
class GetBlockNumOp(_QueryOp):
    """Number of blocks."""

    name = "hivm.hir.get_block_num"
    result = result_def(i64)
    traits = traits_def(Pure())
    assembly_format = _QUERY


@operation(pipes=("S",))
class GetSubBlockIdxOp(_QueryOp):
    """Which of the block's Vector cores this is, 0 or 1."""

    name = "hivm.hir.get_sub_block_idx"
    result = result_def(i64)
    traits = traits_def(Pure())
    assembly_format = _QUERY


@operation(pipes=("S",))
class GetSubBlockNumOp(_QueryOp):
    """Number of Vector cores of a block."""

    name = "hivm.hir.get_sub_block_num"
    result = result_def(i64)
    traits = traits_def(Pure())
    assembly_format = _QUERY


@operation(pipes=("S",), seen=True)
class GetSysCntOp(_QueryOp):
    """The system counter: read twice, it is two numbers."""

    name = "hivm.hir.get_sys_cnt"
    result = result_def(i64)
    assembly_format = _QUERY


@operation(pipes=("S",), seen=True)
class MultiBufferCounterOp(DialectOp):
    """Number of the iteration of the loop around, for choosing among several buffers."""

    name = "hivm.hir.multi_buffer_counter"
    counter = result_def(i64)
    assembly_format = "attr-dict `->` type($counter)"

    def __init__(self) -> None:
        IRDLOperation.__init__(self, result_types=[i64])


class _BareOp(DialectOp):
    """An op that is its name."""

    def __init__(self) -> None:
        IRDLOperation.__init__(self)


@operation(pipes=("S",), seen=True)
class SetMaskNormOp(_BareOp):
    """Let masks of vector instructions be bit masks; stands at the entry of a kernel on 910B."""

    name = "hivm.hir.set_mask_norm"
    assembly_format = "attr-dict"


@operation(pipes=("S",), seen=True)
class InitDebugOp(_BareOp):
    """Prepare debug output."""

    name = "hivm.hir.init_debug"
    assembly_format = "attr-dict"


@operation(pipes=("S",), seen=True)
class FinishDebugOp(_BareOp):
    """Flush debug output."""

    name = "hivm.hir.finish_debug"
    assembly_format = "attr-dict"


@operation(pipes=("S",), seen=True)
class SetCtrlOp(DialectOp):
    """Set or clear a bit of the control register."""

    name = "hivm.hir.set_ctrl"
    enable = prop_def(BOOL)
    idx = prop_def(IntegerAttr.constr(i64))
    assembly_format = "$enable `at` `ctrl` `` `[` $idx `]` attr-dict"

    def __init__(self, bit: int, *, enable: bool) -> None:
        """Make the op; ``bit`` is the number of the bit."""
        IRDLOperation.__init__(self, properties={"enable": boolean(enable), "idx": IntegerAttr(bit, i64)})


@operation(pipes=("S",), seen=True)
class SetAtomicOp(DialectOp):
    """Let the following stores add to what is there (or take the maximum ...); ``none`` ends it."""

    name = "hivm.hir.set_atomic"
    kind = prop_def(AtomicKindAttr)
    type = opt_prop_def(OfClass((TypeAttribute,), "a type"))
    assembly_format = "`kind` `=` $kind `[` `type` `=` $type `]` attr-dict"

    def __init__(self, kind: str, type_: Attribute) -> None:
        """Make the op; ``type_`` is the element type of the stores."""
        IRDLOperation.__init__(self, properties={"kind": AtomicKindAttr(kind), "type": type_})


def adds_as_set(op: Operation) -> bool:
    """Whether the core is set to combine what an op stores with what is there, by a ``set_atomic`` before it in the text."""
    here: Operation | None = op
    while here is not None:
        before = here.prev_op
        if before is None:
            here = here.parent_op()
            continue
        here = before
        last = _last_setting(before)
        if last is not None:
            return last.kind.data != "none"
    return False


def _last_setting(op: Operation) -> SetAtomicOp | None:
    """The op, if it is a ``set_atomic``, or the last one inside of it, such as one in a loop, which holds behind it, too."""
    if type(op) is SetAtomicOp:  # isinstance asks an abstract class
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


@operation(pipes=("S",), reads=("addr",), seen=True)
class LoadScalarOp(DialectOp):
    """Read a number from GM."""

    name = "hivm.hir.load_scalar"
    addr = operand_def()
    result = result_def(SCALAR)
    assembly_format = "attr-dict $addr `:` type($addr) `->` type($result)"

    def __init__(self, address: Operand, type_: Attribute) -> None:
        """Make the op; ``address`` is an ``!llvm.ptr<1>``."""
        IRDLOperation.__init__(self, operands=[address], result_types=[type_])

    def verify_(self) -> None:
        from xdsl.dialects.llvm import LLVMPointerType

        type_ = self.addr.type
        if not isinstance(type_, LLVMPointerType):
            fail(f"operand #0 must be LLVM pointer type, but got '{type_}'")
        if str(type_) != "!llvm.ptr<1>":
            fail("expecting GM address")


@operation(pipes=("S",), aside=("ptr",), seen=True)
class DCCIOp(DialectOp):
    """Clean and invalidate lines of the data cache."""

    name = "hivm.hir.dcci"
    mode = prop_def(DCCIModeAttr)
    dataCacheKind = prop_def(DataCacheKindAttr)
    ptr = opt_operand_def(MEMREF)
    assembly_format = "attr-dict `(` $mode `,` $dataCacheKind (`,` $ptr^ `:` type($ptr))? `)`"

    def __init__(self, mode: str, kind: str, memory: Operand | None = None) -> None:
        """Make the op: ``single_cache_line`` or ``all_cache_lines`` of ``all``, ``ub``, ``out`` or ``atomic``."""
        IRDLOperation.__init__(self, operands=[memory], properties={
            "mode": DCCIModeAttr(mode), "dataCacheKind": DataCacheKindAttr(kind)})


@operation(pipes=("S",), seen=True)
class SetFftsBaseAddrOp(DialectOp):
    """Tell the core where the flags between cores are."""

    name = "hivm.hir.set_ffts_base_addr"
    ffts_base_addr = operand_def(i64)
    assembly_format = "attr-dict $ffts_base_addr"

    def __init__(self, address: Operand) -> None:
        IRDLOperation.__init__(self, operands=[address])


@operation()
class PointerCastOp(DialectOp):
    """A buffer at a byte address of its memory; several addresses make as many buffers, used in turn."""

    name = "hivm.hir.pointer_cast"
    addrs = var_operand_def(i64)
    dynamicSizes = var_operand_def(IndexType())
    result = result_def(MEMREF)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = "`(` $addrs `)` (`[` $dynamicSizes^ `]`)? attr-dict `:` type($result)"

    def __init__(self, addresses: Sequence[Operand], type_: MemRefType, dynamic_sizes: Sequence[Operand] = ()) -> None:
        """Make the buffer; addresses are i64 values, ``dynamic_sizes`` one index value per dynamic axis."""
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
    """The same bits read as another element type."""

    name = "hivm.hir.bitcast"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$src `:` type($src) `->` type($result) attr-dict"

    def __init__(self, src: Operand, type_: Attribute) -> None:
        IRDLOperation.__init__(self, operands=[src], result_types=[type_])

    def verify_(self) -> None:
        if not fitting_shapes(self.src.type, self.result.type):
            fail("requires the same shape for all operands and results")
        values = (TensorType, UnrankedTensorType, VectorType)
        mapped = [isinstance(type_, values) for type_ in (self.src.type, self.result.type)]
        if mapped[0] and not mapped[1]:
            fail("if an operand is non-scalar, then there must be at least one non-scalar result")
        if mapped[1] and not mapped[0]:
            fail("if a result is non-scalar, then at least one operand must be non-scalar")


@irdl_custom_directive
class OutputShape(CustomDirective):
    """``output_shape [8, %n]``, which v1.0.0 does not write."""

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


@operation()
class ConvertLayoutOp(DialectOp):
    """The same data seen in another layout."""

    name = "hivm.hir.convert_layout"
    source = operand_def(TENSOR_OR_MEMREF)
    srcLayout = prop_def(DataLayoutAttr)
    dstLayout = prop_def(DataLayoutAttr)
    static_output_shape = prop_def(I64_ARRAY)
    output_shape = var_operand_def(IndexType())
    result = result_def(TENSOR_OR_MEMREF)
    traits = traits_def(Pure())
    custom_directives = (OutputShape,)
    assembly_format = (
        "$source custom<OutputShape>($output_shape, $static_output_shape) attr-dict `:` `(` type($source) `)` `->`"
        " type($result)"
    )

    def __init__(self, source: Operand, type_: Attribute, src_layout: DataLayoutAttr, dst_layout: DataLayoutAttr,
                 output_shape: Sequence[int | SSAValue]) -> None:
        """Make the op; sizes of ``output_shape`` that are not numbers are index values."""
        static, dynamic = split_dynamic_index_list(output_shape, DYNAMIC_INDEX)
        IRDLOperation.__init__(self, operands=[source, dynamic], result_types=[type_], properties={
            "srcLayout": src_layout, "dstLayout": dst_layout, "static_output_shape": integers(static)})

    def fill_in(self) -> None:
        """Take the shape from the result's type where the text (of v1.0.0) states none."""
        type_ = self.result.type
        if not axes(self, "static_output_shape") and isinstance(type_, (MemRefType, TensorType)) and type_.has_static_shape():
            self.properties["static_output_shape"] = integers(type_.get_shape())

    def verify_(self) -> None:
        if element_type(self.source.type) != element_type(self.result.type):
            fail("requires the same element type for all operands and results")
        dynamic = axes(self, "static_output_shape").count(DYNAMIC_INDEX)
        if dynamic != len(self.output_shape):
            fail(f"expected {dynamic} dynamic dimensions but got {len(self.output_shape)}")


@operation(pipes=("S",), reads={"arg": "value"}, seen=True)
class DebugOp(DialectOp):
    """Print a value, or assert that it holds."""

    name = "hivm.hir.debug"
    debugtype = prop_def(StringAttr)
    prefix = prop_def(StringAttr)
    hex = prop_def(BOOL)
    arg = operand_def(PRINTABLE)
    tcoretype = opt_prop_def(CoreTypeAttr)
    memscope = opt_prop_def(AddressSpaceAttr)
    assembly_format = "attr-dict $arg `:` type($arg)"

    def __init__(self, value: Operand, *, kind: str = "print", prefix: str = "", hexadecimal: bool = False,
                 core: str | None = None, space: str | None = None) -> None:
        """Make the op.

        Args:
            value: scalar, tensor or buffer.
            kind: ``print`` or ``assert``.
            prefix: text before the value.
            hexadecimal: print integers in hexadecimal.
            core: ``CUBE``, ``VECTOR``, ``CUBE_OR_VECTOR`` or ``CUBE_AND_VECTOR``.
            space: memory space of the value.
        """
        IRDLOperation.__init__(self, operands=[value], properties={
            "debugtype": StringAttr(kind), "prefix": StringAttr(prefix), "hex": boolean(hexadecimal),
            "tcoretype": None if core is None else CoreTypeAttr(core),
            "memscope": None if space is None else AddressSpaceAttr(space)})

    def core(self) -> str:
        """The core that is stated, or that has the memory; ``either`` for scalars and for global memory."""
        if self.tcoretype is not None and self.tcoretype.data in ("CUBE", "VECTOR"):
            return "AIC" if self.tcoretype.data == "CUBE" else "AIV"
        space = space_of(self.arg.type)
        return "either" if space in (None, "gm") else "AIV" if space == "ub" else "AIC"


OPERATIONS = (
    GetBlockIdxOp, GetBlockNumOp, GetSubBlockIdxOp, GetSubBlockNumOp, GetSysCntOp, MultiBufferCounterOp,
    SetMaskNormOp, InitDebugOp, FinishDebugOp, SetCtrlOp, SetAtomicOp, LoadScalarOp, DCCIOp, SetFftsBaseAddrOp,
    PointerCastOp, BitcastOp, ConvertLayoutOp, DebugOp,
)
