"""Tile ops that compute or move tiles: copies, gemm, elementwise ops, reductions, fills, broadcasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    IndexType,
    MemRefType,
    StringAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
)

from tilelang_npu import ops
from tilelang_npu.dialects.hivm.attributes import address_space
from tilelang_npu.dialects.hivm.enums import UnitFlagAttr
from tilelang_npu.dialects.ir.constants import is_known_true
from tilelang_npu.dialects.ir.declaration import fail
from tilelang_npu.dialects.ir.effects import EffectsOp, op_with_effects
from tilelang_npu.dialects.tile.buffers import shape_of, shape_text
from tilelang_npu.dialects.tile.structure import vector_cores_of
from tilelang_npu.ops.convolution import Patches
from tilelang_npu.ops.scale_layouts import GROUP, SCALE_LAYOUTS

__all__ = [
    "BroadcastOp", "CopyOp", "ElementwiseOp", "FillOp", "GemmOp", "PatchLoadOp", "ReduceOp",
]


def _broadcasts(source: tuple[int, ...], target: tuple[int, ...]) -> bool:
    return len(source) == len(target) and all(
        s in (1, t) or -1 in (s, t) for s, t in zip(source, target, strict=True)
    )


@op_with_effects(reads={"source": "copy-source"}, writes={"target": "copy-target"}, untouched=("pad",))
class CopyOp(EffectsOp):
    """Copies a tile; if the element types differ, also casts with ``round_mode``.

    Source and destination must have equal shapes; dynamic sizes are not compared. The exception is a source in global memory,
    which may be smaller than the destination: the other elements of the destination are set to ``pad``. Elements of a global
    source outside of the tensor's bounds also read as ``pad`` (by default zero). Elements of a global destination outside of
    the tensor's bounds are not written.

    ``transpose`` swaps the last two axes. ``relu`` replaces negative values by zero. ``atomic`` is ``add``, ``max`` or ``min``:
    each element is combined atomically with that of the global destination, by a sum, or the larger or smaller value. With
    ``halves``, each Vector core of the launch has its own destination buffer, and the rows of the source matrix are divided
    evenly between the Vector cores, in order. With ``unit_flag``, a copy from L0C waits for each block of L0C until a product
    with a unit flag passes the block on, and then gives the block back. With ``scales``, the source has the scales of an MX
    matrix in this layout (``ops/scale_layouts.py``), and the destination has them as [M, K / 32] or [K / 32, N].
    """

    name = "tile.copy"
    source = operand_def(MemRefType)
    target = operand_def(MemRefType)
    pad = opt_operand_def(AnyAttr())
    transpose = opt_prop_def(UnitAttr)
    relu = opt_prop_def(UnitAttr)
    round_mode = opt_prop_def(StringAttr)
    atomic = opt_prop_def(StringAttr)
    halves = opt_prop_def(UnitAttr)
    unit_flag = opt_prop_def(UnitFlagAttr)
    scales = opt_prop_def(StringAttr)
    assembly_format = (
        "$source `to` $target (`pad` $pad^ `:` type($pad))? (`transpose` $transpose^)? (`relu` $relu^)?"
        " (`round` $round_mode^)? (`atomic` $atomic^)? (`halves` $halves^)?"
        " (`unit_flag` $unit_flag^)? (`scales` $scales^)? attr-dict"
        " `:` type($source) `to` type($target)"
    )

    def __init__(self, source: SSAValue, target: SSAValue, pad: SSAValue | None = None, *, transpose: bool = False,
                 relu: bool = False, round_mode: str | None = None, atomic: str | None = None, unit_flag: str | None = None,
                 scales: str | None = None):
        super().__init__(
            operands=[source, target, [pad] if pad is not None else []],
            properties={
                "transpose": UnitAttr() if transpose else None,
                "relu": UnitAttr() if relu else None,
                "round_mode": StringAttr(round_mode) if round_mode else None,
                "atomic": StringAttr(atomic) if atomic else None,
                "unit_flag": UnitFlagAttr(unit_flag) if unit_flag else None,
                "scales": StringAttr(scales) if scales else None,
            },
        )

    def verify_(self) -> None:
        source, target = shape_of(self.source), shape_of(self.target)
        if self.transpose is not None:
            source = (*source[:-2], source[-1], source[-2])
        if self.halves is not None:
            source = (*source[:-2], source[-2] // vector_cores_of(self), source[-1])
        if self.scales is not None:
            layout = SCALE_LAYOUTS.get(self.scales.data)
            if layout is None:
                fail(f"there is no layout {self.scales.data!r} of scales")
            source = layout.logical_shape(source)
        kind = self.source.type
        loads = isinstance(kind, MemRefType) and kind.memory_space == address_space("gm")
        if len(source) != len(target) or any(s != t and -1 not in (s, t) and not (loads and s < t)
                                             for s, t in zip(source, target, strict=True)):
            fail(f"source has shape {shape_text(shape_of(self.source))}, destination {shape_text(target)}, and the copy cannot "
                 "change the shape")

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the copy is atomic: it then combines its values with those of the destination."""
        return self.atomic is not None


@op_with_effects(reads={"source": "image"}, writes={"target": "patches"}, untouched=("row", "column"))
class PatchLoadOp(EffectsOp):
    """Loads patches of an image from L1 to L0A: a part of the matrix that a convolution multiplies (``ops/convolution.py``).

    The source has the shape [height x width, channels], with as many channels as fit into 32 bytes. The destination becomes the
    part of the matrix that begins at ``row`` and ``column``.
    """

    name = "tile.load_patches"
    source = operand_def(MemRefType)
    target = operand_def(MemRefType)
    row = operand_def(IndexType)
    column = operand_def(IndexType)
    geometry = prop_def(DenseArrayBase.constr(i64))
    assembly_format = (
        "$source `to` $target `at` `(` $row `,` $column `)` $geometry attr-dict `:` type($source) `to` type($target)"
    )

    def __init__(self, source: SSAValue, target: SSAValue, row: SSAValue, column: SSAValue, patches: Patches):
        super().__init__(operands=[source, target, row, column],
                         properties={"geometry": DenseArrayBase.from_list(i64, [*patches])})

    @property
    def patches(self) -> Patches:
        """The image, the kernel, and how the kernel moves over the image."""
        return Patches(*map(int, self.geometry.get_values()))

    def verify_(self) -> None:
        count = len(self.geometry.get_values())
        if count != len(Patches._fields):
            fail(f"geometry has {count} numbers in place of {len(Patches._fields)}")
        if (problem := self.patches.problem()) is not None:
            fail(problem)
        if len(shape_of(self.source)) != 2 or len(shape_of(self.target)) != 2:
            fail(f"source {shape_text(shape_of(self.source))} and destination {shape_text(shape_of(self.target))} must be "
                 "matrices")


@op_with_effects(reads={"a": "left", "b": "right", "scale_a": "scale", "scale_b": "scale"}, writes={"c": "accumulator"})
class GemmOp(EffectsOp):
    """Computes ``C += A @ B`` on the Cube core, or ``C = A @ B`` if ``init`` is true.

    A has the shape [M, K], or [K, M] with ``transpose_a``. B has the shape [K, N], or [N, K] with ``transpose_b``. With
    ``int4``, A and B are bytes (i8) that hold two elements each, so their last axes have half of these sizes.

    With scales, A and B are MX matrices: each group of 32 elements along K is multiplied by a power of two, whose biased
    exponent is a byte of ``scale_a`` [M, K / 32] or ``scale_b`` [K / 32, N], whether A and B are transposed or not. If A and B
    are bytes then, ``format`` says what they hold: ``e4m3`` or ``e5m2``, or ``e2m1``, two elements in each byte.

    With ``unit_flag``, the product waits for each block of C until the copy that takes the block has given it back, and passes
    the block on to the next copy if the flag is ``ENABLED_WITH_UPDATE`` or ``passes`` is true.
    """

    name = "tile.gemm"
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    c = operand_def(MemRefType)
    init = operand_def(i1)
    passes = opt_operand_def(i1)
    scale_a = opt_operand_def(MemRefType)
    scale_b = opt_operand_def(MemRefType)
    transpose_a = opt_prop_def(UnitAttr)
    transpose_b = opt_prop_def(UnitAttr)
    int4 = opt_prop_def(UnitAttr)
    format = opt_prop_def(StringAttr)
    unit_flag = opt_prop_def(UnitFlagAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$a `,` $b `into` $c `init` $init (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)? (`int4` $int4^)?"
        " (`format` $format^)? (`scale_a` $scale_a^ `:` type($scale_a))? (`scale_b` $scale_b^ `:` type($scale_b))?"
        " (`unit_flag` $unit_flag^)? (`passes` $passes^)? attr-dict `:` type($a) `,` type($b) `into` type($c)"
    )

    def __init__(self, a: SSAValue, b: SSAValue, c: SSAValue, init: SSAValue, *, transpose_a: bool = False,
                 transpose_b: bool = False, int4: bool = False, held: str | None = None, unit_flag: str | None = None,
                 passes: SSAValue | None = None, scales: tuple[SSAValue | None, SSAValue | None] = (None, None)):
        super().__init__(
            operands=[a, b, c, init, passes, *scales],
            properties={
                "transpose_a": UnitAttr() if transpose_a else None,
                "transpose_b": UnitAttr() if transpose_b else None,
                "int4": UnitAttr() if int4 else None,
                "format": StringAttr(held) if held else None,
                "unit_flag": UnitFlagAttr(unit_flag) if unit_flag else None,
            },
        )

    @property
    def is_packed(self) -> bool:
        """Whether a byte of A and B holds two elements."""
        return self.int4 is not None or (self.format is not None and self.format.data == "e2m1")

    def sizes(self) -> tuple[int, int, int]:
        """Returns M, K and N, as the shapes of A and B give them, with -1 for a dynamic size."""
        a, b = self._logical_shape(self.a), self._logical_shape(self.b)
        m, k = (a[1], a[0]) if self.transpose_a is not None else (a[0], a[1])
        n = b[0] if self.transpose_b is not None else b[1]
        return m, k, n

    def _logical_shape(self, operand: SSAValue) -> tuple[int, ...]:
        """Returns the shape of A or B in elements of the product."""
        shape = shape_of(operand)
        return (*shape[:-1], 2 * shape[-1]) if self.is_packed and shape and shape[-1] >= 0 else shape

    def verify_(self) -> None:
        a, b, c = self._logical_shape(self.a), self._logical_shape(self.b), shape_of(self.c)
        if not len(a) == len(b) == len(c) == 2:
            fail(f"A, B and C of a gemm must have two axes; A has shape {shape_text(a)}, B {shape_text(b)}, C {shape_text(c)}")
        m, k, n = self.sizes()
        other = b[1] if self.transpose_b is not None else b[0]
        for name, left, right in (("K of A and B", k, other), ("M of A and C", m, c[0]), ("N of B and C", n, c[1])):
            if left != right and -1 not in (left, right):
                fail(f"{name} differ: {left} and {right} (A {shape_text(a)}, B {shape_text(b)}, C {shape_text(c)})")
        if (self.scale_a is None) is not (self.scale_b is None):
            fail("a gemm of MX matrices has the scales of both")
        if self.scale_a is not None and self.scale_b is not None:
            groups = k // GROUP if k >= 0 else -1
            for name, scales, wanted in (("A", self.scale_a, (m, groups)), ("B", self.scale_b, (groups, n))):
                have = shape_of(scales)
                if len(have) != 2 or any(x != y and -1 not in (x, y) for x, y in zip(have, wanted, strict=True)):
                    fail(f"the scales of {name} must have shape {shape_text(wanted)}, not {shape_text(have)}")

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the op may add to the old values of C: it does, unless ``init`` is known to be true."""
        return not is_known_true(self.init)


@op_with_effects(reads={"inputs": "vector"}, writes={"target": "vector"})
class ElementwiseOp(EffectsOp):
    """Executes an operation that is an elementwise entry of the op table: ``target = fn(inputs)``.

    An input must be a memref of the target's rank, in which each axis has the target's size or size 1, or a scalar where the
    entry allows one. The op's attributes are the clauses of the entry whose value differs from the default.
    """

    name = "tile.elementwise"
    fn = prop_def(StringAttr)
    inputs = var_operand_def(AnyAttr())
    target = operand_def(MemRefType)
    assembly_format = (
        "$fn `ins` `(` $inputs `:` type($inputs) `)` `outs` `(` $target `:` type($target) `)` attr-dict"
    )

    def __init__(self, fn: str, inputs: Sequence[SSAValue], target: SSAValue, clauses: Mapping[str, str | bool] | None = None):
        attributes: dict[str, Attribute] = {
            name: BoolAttr.from_bool(value) if isinstance(value, bool) else StringAttr(value)
            for name, value in (clauses or {}).items()
        }
        super().__init__(
            operands=[inputs, target], properties={"fn": StringAttr(fn)}, attributes=attributes
        )

    def entry(self) -> ops.Elementwise:
        """Returns the entry of the op table that the op executes.

        Raises:
            VerifyException: the op table has no elementwise entry of this name.
        """
        found = ops.operations().get(self.fn.data)
        if not isinstance(found, ops.Elementwise):
            fail(f"{self.fn.data!r} is not an elementwise operation of the op table")
        return found

    def verify_(self) -> None:
        entry, target = self.entry(), shape_of(self.target)
        if len(self.inputs) != entry.inputs:
            fail(f"{entry.name} takes {entry.inputs} inputs, not {len(self.inputs)}")
        for position, value in enumerate(self.inputs):
            if not isinstance(value.type, MemRefType):
                continue
            if not _broadcasts(shape_of(value), target):
                found = shape_text(shape_of(value))
                fail(f"{entry.name}: input {position} has shape {found}, destination {shape_text(target)}")
        known = {clause.name for clause in entry.clauses}
        for name in self.attributes:
            if name not in known and "." not in name:  # an attribute of a dialect may be on any op
                fail(f"{entry.name} has no clause {name!r}")

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the operation combines its result with the old values of the destination."""
        entry = self.entry()
        return isinstance(entry, ops.Composite) and entry.accumulates


@op_with_effects(reads={"source": "vector"}, writes={"target": "vector"})
class ReduceOp(EffectsOp):
    """Executes a reduction of the op table along the axes ``dims`` of the source.

    The target must have the rank of the source, size 1 along ``dims``, and the sizes of the source along the other axes. With
    ``accumulate`` the result is combined with the old values of the target. With ``absolute`` the absolute values of the source
    are reduced.
    """

    name = "tile.reduce"
    fn = prop_def(StringAttr)
    source = operand_def(MemRefType)
    target = operand_def(MemRefType)
    dims = prop_def(DenseArrayBase.constr(i64))
    absolute = opt_prop_def(UnitAttr)
    accumulate = opt_prop_def(UnitAttr)
    assembly_format = (
        "$fn (`absolute` $absolute^)? (`accumulate` $accumulate^)?"
        " `ins` `(` $source `:` type($source) `)` `outs` `(` $target `:` type($target) `)`"
        " `dims` `=` $dims attr-dict"
    )

    def __init__(self, fn: str, source: SSAValue, target: SSAValue, dims: Sequence[int], *, clear: bool = True,
                 absolute: bool = False):
        super().__init__(
            operands=[source, target],
            properties={
                "fn": StringAttr(fn),
                "dims": DenseArrayBase.from_list(i64, list(dims)),
                "absolute": UnitAttr() if absolute else None,
                "accumulate": None if clear else UnitAttr(),
            },
        )

    def entry(self) -> ops.Reduce:
        """Returns the entry of the op table that the op executes.

        Raises:
            VerifyException: the op table has no reduction of this name.
        """
        found = ops.operations().get(self.fn.data)
        if not isinstance(found, ops.Reduce):
            fail(f"{self.fn.data!r} is not a reduction of the op table")
        return found

    def verify_(self) -> None:
        self.entry()
        source, target, dims = shape_of(self.source), shape_of(self.target), self.dims.get_values()
        expected = tuple(1 if axis in dims else size for axis, size in enumerate(source))
        if len(source) != len(target) or any(e != t and -1 not in (e, t) for e, t in zip(expected, target, strict=True)):
            fail(f"source {shape_text(source)} reduced along {list(dims)} gives {shape_text(expected)}, "
                 f"destination is {shape_text(target)}")

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the result is combined with the old values of the target."""
        return self.accumulate is not None


@op_with_effects(writes={"target": "fill"}, untouched=("value",))
class FillOp(EffectsOp):
    """Writes a scalar to every element of a buffer."""

    name = "tile.fill"
    value = operand_def(AnyAttr())
    target = operand_def(MemRefType)
    assembly_format = "$value `into` $target attr-dict `:` type($value) `into` type($target)"

    def __init__(self, value: SSAValue, target: SSAValue):
        super().__init__(operands=[value, target])


@op_with_effects(reads={"source": "vector"}, writes={"target": "vector"})
class BroadcastOp(EffectsOp):
    """Repeats the source along its axes of size 1, so that it fills the target; both must have the same rank."""

    name = "tile.broadcast"
    source = operand_def(MemRefType)
    target = operand_def(MemRefType)
    assembly_format = "$source `to` $target attr-dict `:` type($source) `to` type($target)"

    def __init__(self, source: SSAValue, target: SSAValue):
        super().__init__(operands=[source, target])

    def verify_(self) -> None:
        if not _broadcasts(shape_of(self.source), shape_of(self.target)):
            fail(f"source {shape_text(shape_of(self.source))} does not broadcast to {shape_text(shape_of(self.target))}")
