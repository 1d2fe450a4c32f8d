"""The tile dialect: what a kernel says, before anything is decided about cores, memories, addresses or waits.

Buffers are memrefs. A buffer whose memory the user fixed has the HIVM address space (``#hivm.address_space<ub>``,
``gm`` for arguments); one that is still open has ``#tile.scope<shared>`` (L1 or UB) or ``#tile.scope<fragment>`` (L0C
or UB); ``#tile.scope<local>`` is scalar storage. Loops and branches are ``scf``, scalars ``arith`` and ``index``,
element accesses ``memref.load`` and ``memref.store``; flags and barriers that the user wrote are the ``hivm`` ops
themselves.

A region of a global tensor may reach beyond it: ``tile.copy`` moves what lies inside, pads what it loads and drops
the rest of what it stores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BoolAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    StridedLayoutAttr,
    StringAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.dialects.utils import DynamicIndexList, split_dynamic_index_list, verify_dynamic_index_list
from xdsl.ir import Attribute, Block, Dialect, EnumAttribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from tilelang_npu import ops


class Scope(StrEnum):
    """A memory that the user left open."""

    SHARED = "shared"
    FRAGMENT = "fragment"
    LOCAL = "local"


@irdl_attr_definition
class ScopeAttr(EnumAttribute[Scope]):
    """``#tile.scope<shared>``: the memory space of a buffer whose place is still to be inferred."""

    name = "tile.scope"

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data.value)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Scope:
        with parser.in_angle_brackets():
            return parser.parse_str_enum(Scope)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Shape of a memref value, with -1 for a dimension known only at run time."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    return tuple(-1 if dim == DYNAMIC_INDEX else dim for dim in kind.get_shape())


def _broadcasts(source: tuple[int, ...], target: tuple[int, ...]) -> bool:
    return len(source) == len(target) and all(
        s in (1, t) or -1 in (s, t) for s, t in zip(source, target, strict=True)
    )


def _text(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join("?" if dim < 0 else str(dim) for dim in shape) + "]"


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """The kernel body, run once per block of the grid: one ``index`` argument per grid axis, then the sub-block if
    asked for.

    ``sub_blocks`` is the number of Vector cores that execute the body side by side (1 or 2); with
    ``explicit_sub_block`` the user wrote the sub-block index (``vid``) and it is the last block argument.
    """

    name = "tile.launch"
    grid = var_operand_def(IndexType)
    sub_blocks = prop_def(IntegerAttr)
    explicit_sub_block = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = (
        "`(` $grid `)` `sub_blocks` $sub_blocks (`explicit` $explicit_sub_block^)? attr-dict-with-keyword $body"
    )

    def __init__(self, grid: Sequence[SSAValue], sub_blocks: int, explicit_sub_block: bool, body: Region | None = None):
        count = len(grid) + explicit_sub_block
        super().__init__(
            operands=[grid],
            properties={
                "sub_blocks": IntegerAttr(sub_blocks, i64),
                "explicit_sub_block": UnitAttr() if explicit_sub_block else None,
            },
            regions=[body or Region(Block(arg_types=[IndexType()] * count))],
        )

    def verify_(self) -> None:
        expected = len(self.grid) + (self.explicit_sub_block is not None)
        if len(self.body.block.args) != expected:
            msg = f"the body takes {len(self.body.block.args)} indices, the grid gives {expected}"
            raise VerifyException(msg)
        if self.sub_blocks.value.data not in (1, 2):
            msg = f"sub_blocks is {self.sub_blocks.value.data}; a block has 1 or 2 vector cores"
            raise VerifyException(msg)


@irdl_op_definition
class OnCoreOp(IRDLOperation):
    """``T.Scope``: the body belongs to one core, whatever its operations are. ``core`` is ``cube`` or ``vector``."""

    name = "tile.on_core"
    core = prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "$core attr-dict-with-keyword $body"

    def __init__(self, core: str, body: Region | None = None):
        super().__init__(properties={"core": StringAttr(core)}, regions=[body or Region(Block())])

    def verify_(self) -> None:
        if self.core.data not in ("cube", "vector"):
            msg = f"core is {self.core.data!r}; it must be 'cube' or 'vector'"
            raise VerifyException(msg)


@irdl_op_definition
class AllocOp(IRDLOperation):
    """An on-chip buffer of static shape.

    ``label`` is the user's name for it; ``address`` a byte address that the user fixed; ``slots`` the number of
    copies that the iterations of the loop around it take in turn.
    """

    name = "tile.alloc"
    label = prop_def(StringAttr)
    address = opt_prop_def(IntegerAttr)
    slots = opt_prop_def(IntegerAttr)
    result = result_def(MemRefType)
    assembly_format = "$label (`at` $address^)? (`slots` $slots^)? attr-dict `:` type($result)"

    def __init__(self, label: str, result_type: MemRefType[Attribute], address: int | None = None):
        properties: dict[str, Attribute | None] = {"label": StringAttr(label)}
        if address is not None:
            properties["address"] = IntegerAttr(address, i64)
        super().__init__(properties=properties, result_types=[result_type])
        self.result.name_hint = label if label.isidentifier() else None

    def verify_(self) -> None:
        shape = shape_of(self.result)
        if any(dim <= 0 for dim in shape):
            msg = f"buffer {self.label.data!r} has shape {_text(shape)}; on-chip shapes are positive constants"
            raise VerifyException(msg)


@irdl_op_definition
class TensorOp(IRDLOperation):
    """A kernel argument whose shape is known only at run time, in its shape: rows without gaps behind a flat argument."""

    name = "tile.tensor"
    source = operand_def(MemRefType)
    sizes = var_operand_def(IndexType)
    static_sizes = prop_def(DenseArrayBase.constr(i64))
    result = result_def(MemRefType)
    traits = traits_def(Pure())
    assembly_format = (
        "$source custom<DynamicIndexList>($sizes, $static_sizes) attr-dict `:` type($source) `to` type($result)"
    )
    custom_directives = (DynamicIndexList,)

    def __init__(self, source: SSAValue, sizes: Sequence[SSAValue | int]):
        static, dynamic = split_dynamic_index_list(sizes, DYNAMIC_INDEX)
        kind = source.type
        assert isinstance(kind, MemRefType)
        shape = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
        super().__init__(
            operands=[source, dynamic],
            properties={"static_sizes": DenseArrayBase.from_list(i64, static)},
            result_types=[MemRefType(kind.element_type, shape, memory_space=kind.memory_space)],
        )

    def mixed_sizes(self) -> list[SSAValue | int]:
        """Sizes per axis, constants as ints."""
        return _mixed(self.static_sizes, self.sizes)

    def verify_(self) -> None:
        if len(shape_of(self.source)) != 1:
            msg = "the argument must be flat"
            raise VerifyException(msg)
        verify_dynamic_index_list(self.static_sizes.get_values(), self.sizes, DYNAMIC_INDEX, " in the sizes")


@irdl_op_definition
class RegionOp(IRDLOperation):
    """A rectangle of a buffer: offsets and sizes per axis; unit axes may be missing from the result type.

    Unlike ``memref.subview`` it may reach beyond a global tensor (see the module's text).
    """

    name = "tile.region"
    source = operand_def(MemRefType)
    offsets = var_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    static_offsets = prop_def(DenseArrayBase.constr(i64))
    static_sizes = prop_def(DenseArrayBase.constr(i64))
    kept = prop_def(DenseArrayBase.constr(i64))
    result = result_def(MemRefType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())
    assembly_format = (
        "$source `` custom<DynamicIndexList>($offsets, $static_offsets)"
        " custom<DynamicIndexList>($sizes, $static_sizes)"
        " `keep` $kept attr-dict `:` type($source) `to` type($result)"
    )
    custom_directives = (DynamicIndexList,)

    def __init__(
        self,
        source: SSAValue,
        offsets: Sequence[SSAValue | int],
        sizes: Sequence[SSAValue | int],
        kept: Sequence[int] | None = None,
    ):
        """``kept`` lists the source axes that the result has; the others must have size 1. By default all are kept."""
        static_offsets, dynamic_offsets = split_dynamic_index_list(offsets, DYNAMIC_INDEX)
        static_sizes, dynamic_sizes = split_dynamic_index_list(sizes, DYNAMIC_INDEX)
        axes = tuple(range(len(offsets))) if kept is None else tuple(kept)
        super().__init__(
            operands=[source, dynamic_offsets, dynamic_sizes],
            properties={
                "static_offsets": DenseArrayBase.from_list(i64, static_offsets),
                "static_sizes": DenseArrayBase.from_list(i64, static_sizes),
                "kept": DenseArrayBase.from_list(i64, axes),
            },
            result_types=[region_type(source, offsets, sizes, axes)],
        )

    def mixed_offsets(self) -> list[SSAValue | int]:
        """Offsets per source axis, constants as ints."""
        return _mixed(self.static_offsets, self.offsets)

    def mixed_sizes(self) -> list[SSAValue | int]:
        """Sizes per source axis, constants as ints."""
        return _mixed(self.static_sizes, self.sizes)

    def verify_(self) -> None:
        rank = len(shape_of(self.source))
        offsets, sizes = self.static_offsets.get_values(), self.static_sizes.get_values()
        if not len(offsets) == len(sizes) == rank:
            msg = f"{len(offsets)} offsets and {len(sizes)} sizes for a buffer of rank {rank}"
            raise VerifyException(msg)
        verify_dynamic_index_list(offsets, self.offsets, DYNAMIC_INDEX, " in the offsets")
        verify_dynamic_index_list(sizes, self.sizes, DYNAMIC_INDEX, " in the sizes")
        if self.result.type != region_type(self.source, self.mixed_offsets(), self.mixed_sizes(), self.kept.get_values()):
            msg = f"result type {self.result.type} does not follow from the offsets and sizes"
            raise VerifyException(msg)


def _mixed(static: DenseArrayBase, dynamic: Sequence[SSAValue]) -> list[SSAValue | int]:
    values = iter(dynamic)
    return [next(values) if value == DYNAMIC_INDEX else int(value) for value in static.get_values()]


def region_type(
    source: SSAValue, offsets: Sequence[SSAValue | int], sizes: Sequence[SSAValue | int], kept: Sequence[int]
) -> MemRefType[Attribute]:
    """Type of the rectangle ``offsets``/``sizes`` of ``source`` with the axes ``kept``."""
    kind = source.type
    assert isinstance(kind, MemRefType)
    strides = kind.get_strides() or [None] * len(sizes)
    offset: int | None = kind.layout.get_offset() if isinstance(kind.layout, StridedLayoutAttr) else 0
    for position, stride in zip(offsets, strides, strict=True):
        known = offset is not None and stride is not None and isinstance(position, int)
        offset = offset + position * stride if known else (offset if position == 0 else None)  # type: ignore[operator]
    shape = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
    layout = StridedLayoutAttr([strides[axis] for axis in kept], offset)
    return MemRefType(kind.element_type, [shape[axis] for axis in kept], layout, kind.memory_space)


@irdl_op_definition
class ViewOp(IRDLOperation):
    """The same elements in the same order under another shape, with no data moved; both sides are dense or differ in
    unit axes.
    """

    name = "tile.view"
    source = operand_def(MemRefType)
    result = result_def(MemRefType)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, result_type: MemRefType[Attribute]):
        super().__init__(operands=[source], result_types=[result_type])


@irdl_op_definition
class CopyOp(IRDLOperation):
    """Move a tile; another element type at the destination is a cast (``round_mode``), ``transpose`` swaps the last
    two axes.

    Source and destination have equal shapes (run-time sizes are equal by construction). What of a global source lies
    beyond the tensor arrives as ``pad`` (zero without it); what of a global destination lies beyond it is not
    written.
    """

    name = "tile.copy"
    source = operand_def(MemRefType)
    target = operand_def(MemRefType)
    pad = opt_operand_def(AnyAttr())
    transpose = opt_prop_def(UnitAttr)
    relu = opt_prop_def(UnitAttr)
    round_mode = opt_prop_def(StringAttr)
    assembly_format = (
        "$source `to` $target (`pad` $pad^ `:` type($pad))? (`transpose` $transpose^)? (`relu` $relu^)?"
        " (`round` $round_mode^)? attr-dict `:` type($source) `to` type($target)"
    )

    def __init__(
        self,
        source: SSAValue,
        target: SSAValue,
        pad: SSAValue | None = None,
        *,
        transpose: bool = False,
        relu: bool = False,
        round_mode: str | None = None,
    ):
        super().__init__(
            operands=[source, target, [pad] if pad is not None else []],
            properties={
                "transpose": UnitAttr() if transpose else None,
                "relu": UnitAttr() if relu else None,
                "round_mode": StringAttr(round_mode) if round_mode else None,
            },
        )

    def verify_(self) -> None:
        source, target = shape_of(self.source), shape_of(self.target)
        if self.transpose is not None:
            source = (*source[:-2], source[-1], source[-2])
        if len(source) != len(target) or any(s != t and -1 not in (s, t) for s, t in zip(source, target, strict=True)):
            msg = f"source has shape {_text(shape_of(self.source))}, destination {_text(target)}"
            raise VerifyException(msg)


@irdl_op_definition
class GemmOp(IRDLOperation):
    """``C (+)= A @ B`` on the Cube core; ``init`` true overwrites C. A is M x K (K x M if transposed), B is K x N (N
    x K).
    """

    name = "tile.gemm"
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    c = operand_def(MemRefType)
    init = operand_def(i1)
    transpose_a = opt_prop_def(UnitAttr)
    transpose_b = opt_prop_def(UnitAttr)
    assembly_format = (
        "$a `,` $b `into` $c `init` $init (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)? attr-dict"
        " `:` type($a) `,` type($b) `into` type($c)"
    )

    def __init__(
        self, a: SSAValue, b: SSAValue, c: SSAValue, init: SSAValue, *, transpose_a: bool = False, transpose_b: bool = False
    ):
        super().__init__(
            operands=[a, b, c, init],
            properties={
                "transpose_a": UnitAttr() if transpose_a else None,
                "transpose_b": UnitAttr() if transpose_b else None,
            },
        )

    def sizes(self) -> tuple[int, int, int]:
        """M, K and N as the shapes give them, with -1 where only run time knows."""
        a, b = shape_of(self.a), shape_of(self.b)
        m, k = (a[1], a[0]) if self.transpose_a is not None else (a[0], a[1])
        n = b[0] if self.transpose_b is not None else b[1]
        return m, k, n

    def verify_(self) -> None:
        a, b, c = shape_of(self.a), shape_of(self.b), shape_of(self.c)
        if not len(a) == len(b) == len(c) == 2:
            msg = f"gemm takes matrices; A is {_text(a)}, B {_text(b)}, C {_text(c)}"
            raise VerifyException(msg)
        m, k, n = self.sizes()
        other = b[1] if self.transpose_b is not None else b[0]
        for what, left, right in (("K of A and B", k, other), ("M of A and C", m, c[0]), ("N of B and C", n, c[1])):
            if left != right and -1 not in (left, right):
                msg = f"{what} differ: {left} and {right} (A {_text(a)}, B {_text(b)}, C {_text(c)})"
                raise VerifyException(msg)


@irdl_op_definition
class ElementwiseOp(IRDLOperation):
    """An elementwise entry of the op tables: ``target = fn(inputs)``. An input is a memref of the target's rank,
    whose axes are the target's or 1, or a scalar where the entry allows one. ``clauses`` are the entry's attributes
    that differ from default.
    """

    name = "tile.elementwise"
    fn = prop_def(StringAttr)
    inputs = var_operand_def(AnyAttr())
    target = operand_def(MemRefType)
    assembly_format = (
        "$fn `ins` `(` $inputs `:` type($inputs) `)` `outs` `(` $target `:` type($target) `)` attr-dict"
    )
    CLAUSE_KINDS: ClassVar[tuple[type[Attribute], ...]] = (StringAttr, IntegerAttr)

    def __init__(self, fn: str, inputs: Sequence[SSAValue], target: SSAValue, clauses: Mapping[str, str | bool] | None = None):
        attributes: dict[str, Attribute] = {
            name: BoolAttr.from_bool(value) if isinstance(value, bool) else StringAttr(value)
            for name, value in (clauses or {}).items()
        }
        super().__init__(
            operands=[inputs, target], properties={"fn": StringAttr(fn)}, attributes=attributes
        )

    def entry(self) -> ops.Elementwise:
        """The op table's entry."""
        found = ops.operations().get(self.fn.data)
        if not isinstance(found, ops.Elementwise):
            msg = f"{self.fn.data!r} is not an elementwise operation"
            raise VerifyException(msg)
        return found

    def verify_(self) -> None:
        entry, target = self.entry(), shape_of(self.target)
        if len(self.inputs) != entry.inputs:
            msg = f"{entry.name} takes {entry.inputs} inputs, not {len(self.inputs)}"
            raise VerifyException(msg)
        for position, value in enumerate(self.inputs):
            if not isinstance(value.type, MemRefType):
                continue
            if not _broadcasts(shape_of(value), target):
                msg = f"{entry.name}: input {position} has shape {_text(shape_of(value))}, destination {_text(target)}"
                raise VerifyException(msg)
        known = {clause.name for clause in entry.clauses}
        for name in self.attributes:
            if name not in known:
                msg = f"{entry.name} has no clause {name!r}"
                raise VerifyException(msg)


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """A reduction entry of the op tables along ``dims``; the target has the source's rank with size 1 there. Without
    ``clear`` the result is combined with what the target holds.
    """

    name = "tile.reduce"
    fn = prop_def(StringAttr)
    source = operand_def(MemRefType)
    target = operand_def(MemRefType)
    dims = prop_def(DenseArrayBase.constr(i64))
    accumulate = opt_prop_def(UnitAttr)
    assembly_format = (
        "$fn (`accumulate` $accumulate^)? `ins` `(` $source `:` type($source) `)` `outs` `(` $target `:` type($target) `)`"
        " `dims` `=` $dims attr-dict"
    )

    def __init__(self, fn: str, source: SSAValue, target: SSAValue, dims: Sequence[int], *, clear: bool = True):
        super().__init__(
            operands=[source, target],
            properties={
                "fn": StringAttr(fn),
                "dims": DenseArrayBase.from_list(i64, list(dims)),
                "accumulate": None if clear else UnitAttr(),
            },
        )

    def entry(self) -> ops.Reduce:
        """The op table's entry."""
        found = ops.operations().get(self.fn.data)
        if not isinstance(found, ops.Reduce):
            msg = f"{self.fn.data!r} is not a reduction"
            raise VerifyException(msg)
        return found

    def verify_(self) -> None:
        self.entry()
        source, target, dims = shape_of(self.source), shape_of(self.target), self.dims.get_values()
        expected = tuple(1 if axis in dims else size for axis, size in enumerate(source))
        if len(source) != len(target) or any(e != t and -1 not in (e, t) for e, t in zip(expected, target, strict=True)):
            msg = f"source {_text(source)} reduced along {list(dims)} gives {_text(expected)}, destination is {_text(target)}"
            raise VerifyException(msg)


@irdl_op_definition
class FillOp(IRDLOperation):
    """Write one scalar to every element of a buffer."""

    name = "tile.fill"
    value = operand_def(AnyAttr())
    target = operand_def(MemRefType)
    assembly_format = "$value `into` $target attr-dict `:` type($value) `into` type($target)"

    def __init__(self, value: SSAValue, target: SSAValue):
        super().__init__(operands=[value, target])


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """Repeat the source along its unit axes until it has the target's shape; the ranks are equal."""

    name = "tile.broadcast"
    source = operand_def(MemRefType)
    target = operand_def(MemRefType)
    assembly_format = "$source `to` $target attr-dict `:` type($source) `to` type($target)"

    def __init__(self, source: SSAValue, target: SSAValue):
        super().__init__(operands=[source, target])

    def verify_(self) -> None:
        if not _broadcasts(shape_of(self.source), shape_of(self.target)):
            msg = f"source {_text(shape_of(self.source))} does not broadcast to {_text(shape_of(self.target))}"
            raise VerifyException(msg)


@irdl_op_definition
class ParallelOp(IRDLOperation):
    """``T.Parallel``: the body once for each point of a box, statement by statement over all points; one index per
    axis.

    The body holds scalar operations, ``memref.load`` and ``memref.store``, and ``scf.if``.
    """

    name = "tile.parallel"
    extents = var_operand_def(IndexType)
    static_extents = prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "custom<DynamicIndexList>($extents, $static_extents) attr-dict-with-keyword $body"
    custom_directives = (DynamicIndexList,)

    def __init__(self, extents: Sequence[SSAValue | int], body: Region | None = None):
        static, dynamic = split_dynamic_index_list(extents, DYNAMIC_INDEX)
        super().__init__(
            operands=[dynamic],
            properties={"static_extents": DenseArrayBase.from_list(i64, static)},
            regions=[body or Region(Block(arg_types=[IndexType()] * len(extents)))],
        )

    def mixed_extents(self) -> list[SSAValue | int]:
        """Extents per axis, constants as ints."""
        return _mixed(self.static_extents, self.extents)

    def verify_(self) -> None:
        if len(self.body.block.args) != len(self.static_extents.get_values()):
            msg = "one body argument per extent"
            raise VerifyException(msg)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Optional end of a tile region."""

    name = "tile.yield"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


NUM_STAGES = "tile.num_stages"  # attribute of scf.for: the depth that T.Pipelined asked for
UNROLL = "tile.unroll"  # attribute of scf.for: T.unroll
DIALECT = "tile.dialect"  # attribute of the function: "npuir" or "ascendc", whose rules the source follows


def stages_of(loop: Operation) -> int:
    """Pipeline depth that the user asked for at ``loop``; 1 where none was asked for."""
    value = loop.attributes.get(NUM_STAGES)
    return value.value.data if isinstance(value, IntegerAttr) else 1


Tile = Dialect(
    "tile",
    [
        LaunchOp,
        OnCoreOp,
        AllocOp,
        TensorOp,
        RegionOp,
        ViewOp,
        CopyOp,
        GemmOp,
        ElementwiseOp,
        ReduceOp,
        FillOp,
        BroadcastOp,
        ParallelOp,
        YieldOp,
    ],
    [ScopeAttr],
)


