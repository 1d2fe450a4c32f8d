"""Matrix products on the Cube core: ``T.gemm``, ``T.gemm_v0``, ``T.gemm_v0_fixp``, ``T.npuir_dot`` and ``T.mma``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from xdsl.ir import SSAValue

from tilelang_npu import target
from tilelang_npu.dialects import tile
from tilelang_npu.errors import TileError
from tilelang_npu.language.cube_moves import require_memory
from tilelang_npu.language.half_accumulators import widen_accumulator
from tilelang_npu.language.operands import as_memory, check_inside, overlap, resized, sizes_argument, with_axes
from tilelang_npu.language.unit_flag_argument import passes_on, unit_flag_mode
from tilelang_npu.ops.scale_layouts import GROUP
from tilelang_npu.target.dtypes import DType
from tilelang_npu.traced import arithmetic
from tilelang_npu.traced.active_trace import TracedValue
from tilelang_npu.traced.buffers import Addressable, Region, Sizes, Tile, same_extent, shape_text
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import Extent, convert, extent
from tilelang_npu.traced.kinds import BOOL
from tilelang_npu.traced.symbols import Number, Sym

ACCUMULATORS = {"float16": "float32", "bfloat16": "float32", "float32": "float32", "int8": "int32", "int4": "int32",
                "float8_e4m3fn": "float32", "float8_e5m2": "float32"}
"""The element type of C for each element type of A and B. The Cube core accumulates in no narrower type.

Every chip is listed here: one without float8 refuses the load of the operands (T110).
"""
_INT4_BLOCK = 64
"""Elements of int4 in the 32 bytes of a row of a fractal; the Cube core reads whole rows of fractals along k."""

_TRUTH = (bool, int, np.bool_)


class Scales(NamedTuple):
    """The scales of the operands of a product of MX matrices.

    Attributes:
        a: the scales of the left matrix, (m, k / 32).
        b: the scales of the right matrix, (k / 32, n).
        format: what the bytes of the operands hold, ``e4m3``, ``e5m2`` or ``e2m1``; None if their element types say it.
    """

    a: Addressable
    b: Addressable
    format: str | None

    def operands(self, builder: Builder, what: str, extents: tuple[Extent, ...], depth: Extent) -> tuple[SSAValue, SSAValue]:
        """Returns the scales as operands of the product, after a check of their shapes.

        Args:
            builder: the trace.
            what: the name of the call, for messages.
            extents: the sizes m and n.
            depth: the size k.

        Raises:
            TileError: T120, the shapes do not fit the matrices.
        """
        groups = depth // GROUP if isinstance(depth, int) else None
        for name, scales, wanted in (("A", self.a, (extents[0], groups)), ("B", self.b, (groups, extents[1]))):
            if any(size is not None and same_extent(have, size) is False
                   for have, size in zip(scales.extents, wanted, strict=True)):
                raise TileError(f"{what}: the scales of {name} are {scales.describe()}", code="T120",
                                help=f"there is one scale for {GROUP} elements along k: A has m x (k / {GROUP}) of them, B"
                                     f" (k / {GROUP}) x n")
        return self.a.ssa(builder), self.b.ssa(builder)

_FORBIDDEN = {
    "A": {"gm": "global memory", "ub": "UB", "cc": "L0C", "local": "scalar storage"},
    "B": {"gm": "global memory", "ub": "UB", "cc": "L0C", "local": "scalar storage"},
    "C": {"gm": "global memory", "ub": "UB", "cbuf": "L1", "ca": "L0A", "cb": "L0B", "local": "scalar storage"},
}


def gemm(A: Tile, B: Tile, C: Tile, *options: object, size: Sizes | None = None, initC: object = False,
         a_transpose: bool = False, b_transpose: bool = False, transpose_A: bool = False,
         transpose_B: bool = False, policy: object = None, clear_accum: object = False, init: object = False,
         k_pack: int = 1, wg_wait: int = 0) -> None:
    """Add the matrix product of ``A`` and ``B`` to ``C``, or write it to ``C`` if ``initC`` is true.

    The Cube core computes the product. ``A`` (m, k) and ``B`` (k, n) must be in L1, and ``C`` (m, n) in L0C: allocate them with
    ``T.alloc_shared`` and ``T.alloc_fragment``, or ``T.alloc_L1`` and ``T.alloc_L0C``. Leading axes of size 1 are ignored.
    ``C`` is written, and is also read unless ``initC`` is true. ``A`` and ``B`` must have the same element type: float16,
    bfloat16, float32 or, on A5, float8, with ``C`` in float32; or int8 or int4, with ``C`` in int32. A tensor or tile of int4
    has two elements in each byte, the one with the even index in the lower four bits: its last axis must have an even size, a
    call passes an array of int8 with half as many columns (or a tensor of ``torch.int4``), and k must be a multiple of 64.
    In a kernel for a GPU, a fragment ``C`` of float16 or bfloat16 becomes one of float32, whose elements are rounded when they
    are copied out of it.

    Example: ``T.gemm(a, b, c, initC=(k == 0))``

    Args:
        A, B: the operands.
        C: the accumulator.
        options: further positional arguments, in the order ``size, initC, a_transpose, b_transpose``; or, if the first one is a
            bool, in the order of TileLang for GPUs: ``transpose_A, transpose_B, policy, clear_accum``.
        size: ``[m, k, n]`` if the product is smaller than the buffers; the numbers need not be constants.
        initC, clear_accum, init: three names for one argument: whether the product replaces the contents of ``C``, as a Python
            bool or a condition of the kernel.
        a_transpose, transpose_A: whether ``A`` is stored as (k, m).
        b_transpose, transpose_B: whether ``B`` is stored as (n, k).
        policy, k_pack, wg_wait: have no effect.

    Raises:
        TileError: T120, the shapes do not fit; T121, there is no product of these element types; T122, an operand is in a
            memory from which the Cube core cannot read it, or to which it cannot write it; T112, ``C`` shares elements with
            ``A`` or ``B``.
    """
    names = ("size", "initC", "a_transpose", "b_transpose")
    if options and isinstance(options[0], bool):
        names = ("transpose_A", "transpose_B", "policy", "clear_accum")
    if len(options) > len(names):
        raise TileError(f"T.gemm takes at most {3 + len(names)} positional arguments, not {3 + len(options)}", code="T145",
                        help="name the further arguments")
    given = dict(zip(names, options, strict=False))
    starts = [given.get("initC", initC), given.get("clear_accum", clear_accum), init]
    emit_product("T.gemm", A, B, C, given.get("size", size), _chosen(starts),
             bool(given.get("a_transpose", a_transpose)) or bool(given.get("transpose_A", transpose_A)),
             bool(given.get("b_transpose", b_transpose)) or bool(given.get("transpose_B", transpose_B)))


def npuir_dot(A: Tile, B: Tile, C: Tile, size: Sizes | None = None, initC: object = False, a_transpose: bool = False,
              b_transpose: bool = False) -> None:
    """Add the matrix product of ``A`` and ``B`` to ``C``, or write it to ``C`` if ``initC`` is true; the same as ``T.gemm``.

    Example: ``T.npuir_dot(a, b, c, initC=True)``
    """
    emit_product("T.npuir_dot", A, B, C, size, initC, bool(a_transpose), bool(b_transpose))


def gemm_v0(A: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_B: bool = False, init: object = False,
            kL0Size: int = 128, n_actual: Number | None = None) -> None:
    """Add the matrix product of ``A`` and ``B`` to ``C``, or write it to ``C`` if ``init`` is true (ascendc).

    Shapes, element types and memories are as for ``T.gemm``. ``C`` is written, and is also read unless ``init`` is true.

    Example: ``T.gemm_v0(a, b, c, init=True)``

    Args:
        A, B: the operands.
        C: the accumulator.
        transpose_A: whether ``A`` is stored as (k, m).
        transpose_B: whether ``B`` is stored as (n, k).
        init: whether the product replaces the contents of ``C``.
        kL0Size: the part of k that upstream loads into L0 at once; has no effect, since ``mmadL1`` divides k itself.
        n_actual: the number of columns to compute, a multiple of 16, if ``transpose_B`` is true; the other columns of ``C``
            keep their contents. Without ``transpose_B`` all columns are computed, as upstream does. The number need not be
            constant.

    Raises:
        TileError: as ``T.gemm``; T145, ``kL0Size`` or ``n_actual`` is not a multiple of 16.
    """
    what = "T.gemm_v0"
    if type(kL0Size) is not int or kL0Size % 16 or not 0 < kL0Size <= 4095:
        raise TileError(f"{what}: kL0Size is {kL0Size!r}", code="T145",
                        help="kL0Size must be a positive multiple of 16, at most 4095")
    _require_whole_fractals(what, n_actual)
    size = None
    if n_actual is not None and transpose_B:
        size = _sizes(what, A, C, None, n_actual, transpose_a=bool(transpose_A))
    emit_product(what, A, B, C, size, init, bool(transpose_A), bool(transpose_B))


def gemm_v0_fixp(A: Tile, B: Tile, C: Tile, dst: Tile, k_actual: Number | None = None, transpose_A: bool = False,
                 transpose_B: bool = False, init: object = False, n_actual: Number | None = None) -> None:
    """Write the matrix product of ``A`` and ``B`` to the global tensor ``dst``, some columns at a time (ascendc).

    ``C`` is an accumulator in L0C for the columns of one part: each part is multiplied, and stored to ``dst`` before the next
    one uses ``C``. So a product that is larger than L0C is possible. Unit flags pass ``C`` from the product to the store and
    back.

    Example: ``T.gemm_v0_fixp(p, v, c, O[row:row + 64, :], k_actual=n, init=True)``

    Args:
        A, B: the operands in L1, as for ``T.gemm_v0``.
        C: the accumulator, with the rows of ``dst``, and as many columns as a part has.
        dst: a global tensor (m, n), or a slice of one.
        k_actual: how many elements along k are multiplied; without it, all. The number need not be constant.
        transpose_A, transpose_B: as for ``T.gemm_v0``.
        init: whether the product replaces the contents of ``C``; must be true, unless ``dst`` has only one part.
        n_actual: the number of columns to compute and store, as for ``T.gemm_v0``; ``dst`` must then have only one part.

    Raises:
        TileError: as ``T.gemm_v0``; T122, also if ``dst`` is not in GM; T190, ``init`` is not true, or ``n_actual`` is given,
            and ``dst`` has several parts.
    """
    what = "T.gemm_v0_fixp"
    _require_whole_fractals(what, n_actual)
    result, part = as_matrix(what, "dst", dst), as_matrix(what, "C", C)
    require_memory(what, "destination", result, ("gm",))
    left, right = as_matrix(what, "A", A), as_matrix(what, "B", B)
    columns, width = result.extents[1], part.extents[1]
    if not isinstance(columns, int) or not isinstance(width, int):
        raise TileError(f"{what}: the number of columns of {result.describe()} or {part.describe()} is not constant",
                        code="T120",
                        help="take a slice with a constant number of columns; n_actual may be known only at run time")
    several = columns > width
    if several and (init is not True or n_actual is not None):
        given = "n_actual is given" if n_actual is not None else "init is not True"
        raise TileError(f"{what}: {given}, and dst {result.describe()} has {-(-columns // width)} parts of {width} columns",
                        code="T190", help="call it for each part, with that part of B, of dst and of the accumulator")
    for first in range(0, columns, width):
        here = min(width, columns - first)
        across = _span(right, 0 if transpose_B else 1, first, here)
        slot, target = _span(part, 1, 0, here), _span(result, 1, first, here)
        size = None
        if k_actual is not None or (n_actual is not None and transpose_B):
            size = _sizes(what, left, slot, k_actual, n_actual if transpose_B else None, transpose_a=bool(transpose_A))
        emit_product(what, left, across, slot, size, init, bool(transpose_A), bool(transpose_B),
                     unit_flag="ENABLED_WITH_UPDATE")
        if size is not None and n_actual is not None and transpose_B:
            slot, target = (_cut_columns(what, memory, size[2]) for memory in (slot, target))
        builder = Builder.running(what)
        builder.tile_op(tile.CopyOp(slot.ssa(builder), target.ssa(builder), unit_flag="ENABLED_WITH_UPDATE"), what)


def mma(A: Tile, B: Tile, C: Tile, init: object = False, n_actual: Number | None = None, unit_flag: Number | None = None,
        k_actual: Number | None = None) -> None:
    """Add the matrix product of ``A`` in L0A and ``B`` in L0B to ``C`` in L0C, or write it to ``C`` if ``init`` is true
    (ascendc).

    The kernel must copy the operands into L0A and L0B itself. The shapes are (m, k), (k, n) and (m, n); the element types are
    as for ``T.gemm``. ``C`` is written, and is also read unless ``init`` is true.

    Example: ``T.mma(left, right, c, init=(k == 0))``

    Args:
        A, B: the operands.
        C: the accumulator.
        init: whether the product replaces the contents of ``C``.
        n_actual: the number of columns to compute; the other columns of ``C`` keep their contents. ``B`` must have been loaded
            with ``T.copy(..., real_n=n_actual)``. The number need not be constant.
        unit_flag: how the product passes blocks of ``C`` to the ``T.copy`` with a unit flag that stores them, without an event
            between the two: ``0b10`` keeps the blocks for the next product, ``0b11`` passes them on. Either way, the product
            waits until the store before it has given them back. ``T.if_then_else(last, 0b11, 0b10)`` is possible. 0 or None for
            no unit flags.
        k_actual: how many elements along k are multiplied. ``A`` and ``B`` must have been loaded with ``T.copy(...,
            real_k=k_actual)``. The number need not be constant.

    Raises:
        TileError: as ``T.gemm``; T122, also if ``A`` is not in L0A or ``B`` is not in L0B; T123, the loads of ``A`` and ``B``
            have other sizes than the product, and so another layout; T145, there is no such unit flag; S307, while the kernel
            runs, a pipe waits for blocks that the other pipe does not pass on.
    """
    what = "T.mma"
    require_l0(what, A, B, "T.gemm_v0")
    size = None if n_actual is None and k_actual is None else _sizes(what, A, C, k_actual, n_actual, transpose_a=False)
    passes = passes_on(what, unit_flag)
    mode = "ENABLED_WITHOUT_UPDATE" if passes is not None else unit_flag_mode(what, unit_flag)
    emit_product(what, A, B, C, size, init, transpose_a=False, transpose_b=False, unit_flag=mode, passes=passes)


def require_l0(what: str, a: object, b: object, other: str) -> None:
    """Checks that the operands of a product without loads are in L0A and L0B; ``other`` is the product with loads.

    Raises:
        TileError: T122, one of them is not.
    """
    for role, value, space, name in (("A", a, "ca", "L0A"), ("B", b, "cb", "L0B")):
        memory = as_memory(what, role, value, packed=True)
        if memory.buffer.space != space:
            raise TileError(f"{what}: {role} {memory.describe()} is not in {name}", code="T122",
                            help=f"allocate it with T.alloc_{name} and load it from L1; {other} takes matrices in L1")


class GemmWarpPolicy:
    """The names of the ways in which TileLang for GPUs distributes a gemm over warps; they have no effect on an NPU.

    Example: ``T.GemmWarpPolicy.FullRow``
    """

    Square = 0
    FullRow = 1
    FullCol = 2


def _chosen(starts: list[object]) -> object:
    """The value among several spellings of ``init`` that is a condition of the kernel; else whether any of them is true."""
    odd = [start for start in starts if not isinstance(start, _TRUTH)]
    return odd[0] if odd else any(starts)


def _require_whole_fractals(what: str, n_actual: object) -> None:
    """Raises T145 if a number of columns is a constant, and not a positive multiple of 16."""
    if isinstance(n_actual, int) and (n_actual % 16 or n_actual <= 0):
        raise TileError(f"{what}: n_actual is {n_actual}", code="T145",
                        help="n_actual must be a positive multiple of 16: fractals of L0C have 16 columns")


def _sizes(what: str, a: Tile, c: Tile, k: Number | None, n: Number | None, *, transpose_a: bool) -> list[Extent]:
    """Returns the sizes m, k and n of a product of which the author gave some; the others are those of ``a`` and ``c``."""
    builder = Builder.running(what)
    rows, columns = as_matrix(what, "C", c).extents
    depth = as_matrix(what, "A", a).extents[0 if transpose_a else 1]
    for name, value in (("k_actual", k), ("n_actual", n)):
        if isinstance(value, bool) or (isinstance(value, int) and value <= 0):
            raise TileError(f"{what}: {name} is {value}", code="T145", help=f"{name} must be at least 1")
    return [rows, depth if k is None else extent(builder, k), columns if n is None else extent(builder, n)]


def _span(memory: Addressable, axis: int, first: int, size: int) -> Addressable:
    """Returns the part of a matrix that has ``size`` rows or columns from the number ``first`` on."""
    offsets, sizes = list(memory.offsets), list(memory.sizes)
    start = offsets[memory.kept[axis]]
    offsets[memory.kept[axis]] = extent(Builder.running("a part of a matrix"), start + first)
    sizes[memory.kept[axis]] = size
    return Region(memory.buffer, offsets, sizes, memory.kept)


def _cut_columns(what: str, memory: Addressable, columns: Extent) -> Addressable:
    sizes = list(memory.sizes)
    sizes[memory.kept[1]] = columns
    return resized(memory, sizes)


def emit_product(what: str, a: Tile, b: Tile, c: Tile, size: object, init: object, transpose_a: bool, transpose_b: bool,
                 unit_flag: str | None = None, passes: object = None, scales: Scales | None = None) -> None:
    """Emits a matrix product, after the checks of its operands.

    Args:
        what: the name of the call, for messages.
        a, b, c: the operands and the accumulator.
        size: the sizes m, k and n; None for those of the matrices.
        init: whether the product replaces the contents of ``c``.
        transpose_a, transpose_b: whether ``a`` is stored as (k, m), and ``b`` as (n, k).
        unit_flag: how the product passes blocks of ``c`` on; None for no unit flags.
        passes: a condition for passing the blocks on.
        scales: the scales of MX matrices; None for other matrices.

    Raises:
        TileError: as ``T.gemm``.
    """
    builder = Builder.running(what)
    if scales is None and ACCUMULATORS.get(str(as_matrix(what, "A", a).dtype)) == "float32":
        widen_accumulator(builder, c)
    matrices = {role: as_matrix(what, role, value) for role, value in (("A", a), ("B", b), ("C", c))}
    _check_memories(what, matrices)
    if size is not None:
        starts = {role for role, value in (("A", a), ("B", b), ("C", c)) if not isinstance(value, Addressable)}
        matrices = _real_sizes(builder, what, matrices, size, transpose_a, transpose_b, starts)
    left, right, result = matrices["A"], matrices["B"], matrices["C"]
    _check_shapes(what, left, right, result, transpose_a, transpose_b)
    if scales is None:
        _check_types(what, left, right, result)
    depth = left.extents[0 if transpose_a else 1]
    if (left.dtype == "int4" or scales is not None) and isinstance(depth, int) and depth % _INT4_BLOCK:
        kind = "int4" if scales is None else "MX matrices"
        raise TileError(f"{what}: k is {depth}, and a product of {kind} needs a multiple of {_INT4_BLOCK}", code="T120",
                        notes=[f"{role} is {memory.describe()}" for role, memory in (("A", left), ("B", right))],
                        help="pad A and B with zeros along k")
    for role in ("A", "B"):
        if overlap(result, matrices[role]) in ("same", "partial"):
            raise TileError(f"{what}: C {result.describe()} shares elements with {role}", code="T112",
                            help=f"write the product to another buffer than {role}")
    traced = isinstance(init, (TracedValue, Sym))
    if not traced and not isinstance(init, _TRUTH):
        raise TileError(f"{what}: init is {init!r}", code="T145",
                        help="init must be True, False or a condition, such as k == 0")
    start = arithmetic.truth(builder, init) if traced else convert(builder, bool(init), BOOL)
    builder.tile_op(tile.GemmOp(left.ssa(builder), right.ssa(builder), result.ssa(builder), start.ssa(builder),
                                transpose_a=transpose_a, transpose_b=transpose_b, int4=left.dtype == "int4",
                                held=None if scales is None else scales.format, unit_flag=unit_flag,
                                scales=(None, None) if scales is None else scales.operands(
                                    builder, what, result.extents, depth),
                                passes=None if passes is None else arithmetic.truth(builder, passes).ssa(builder)), what)


def as_matrix(what: str, role: str, value: object) -> Addressable:
    """Returns an operand of a product with its two axes; leading axes of size 1 are dropped.

    Raises:
        TileError: T110, T120, it is no matrix.
    """
    memory = as_memory(what, role, value, packed=True)
    kept = list(memory.kept)
    while len(kept) > 2 and isinstance(memory.sizes[kept[0]], int) and memory.sizes[kept[0]] == 1:
        kept.pop(0)
    if len(kept) != 2:
        raise TileError(f"{what}: {role} {memory.describe()} is not a matrix", code="T120",
                        help="slice it to two axes; leading axes of size 1 do not count")
    return with_axes(memory, kept)


def _check_memories(what: str, matrices: dict[str, Addressable]) -> None:
    for role, memory in matrices.items():
        place = _FORBIDDEN[role].get(memory.buffer.space)
        if place is not None:
            wanted = f"takes {role} from L1 (T.alloc_L1 or T.alloc_shared)"
            if role == "C":
                wanted = "writes to L0C (T.alloc_L0C or T.alloc_fragment)"
            raise TileError(f"{what}: {role} {memory.describe()} is in {place}", code="T122", help=f"the Cube core {wanted}")


def _real_sizes(builder: Builder, what: str, matrices: dict[str, Addressable], size: object, transpose_a: bool,
                transpose_b: bool, starts: set[str]) -> dict[str, Addressable]:
    """The matrices cut to ``size``; ``starts`` names the matrices of which the author gave the first element only."""
    sizes = sizes_argument(builder, what, size)
    if len(sizes) != 3:
        raise TileError(f"{what}: size must be [m, k, n], not {len(sizes)} extents", code="T120",
                        help="write size=[rows of A, columns of A, columns of B]")
    m, k, n = sizes
    wanted = {"A": (k, m) if transpose_a else (m, k), "B": (n, k) if transpose_b else (k, n), "C": (m, n)}
    return {role: _corner(what, role, memory, wanted[role], starts=role in starts) for role, memory in matrices.items()}


def _corner(what: str, role: str, memory: Addressable, sizes: tuple[Extent, ...], *, starts: bool) -> Addressable:
    extents = list(memory.sizes)
    for axis, size in zip(memory.kept, sizes, strict=True):
        have = extents[axis]
        if not starts and isinstance(have, int) and isinstance(size, int) and size > have:
            raise TileError(f"{what}: size asks for {shape_text(sizes)} of {role} {memory.describe()}", code="T120",
                            help="size is [m, k, n], and must be at most the sizes of the buffers")
        extents[axis] = size
    found = resized(memory, extents)
    if isinstance(found, Region):
        check_inside(what, found)
    return found


def _check_shapes(what: str, a: Addressable, b: Addressable, c: Addressable, transpose_a: bool, transpose_b: bool) -> None:
    (m, k), (k_b, n) = a.extents, b.extents
    if transpose_a:
        m, k = k, m
    if transpose_b:
        k_b, n = n, k_b
    for name, left, right in (("K of A and B", k, k_b), ("M of A and C", m, c.extents[0]), ("N of B and C", n, c.extents[1])):
        if same_extent(left, right) is False:
            turned = [role for role, yes in (("A", transpose_a), ("B", transpose_b)) if yes]
            raise TileError(f"{what}: {name} differ, {left} and {right}", code="T120",
                            notes=[f"{role} is {memory.describe()}" + (", transposed" if role in turned else "")
                                   for role, memory in (("A", a), ("B", b), ("C", c))],
                            help="A must be M x K, B K x N and C M x N; a transposed A must be K x M, a transposed B N x K")


def _families_with(element: str) -> str:
    """The families whose Cube cores multiply an element type, in brackets; empty where all do."""
    families = dict.fromkeys(chip.family for chip in target.chips() if element in chip.cube.k_step)
    return "" if len(families) == len(target.families()) else f" (on {', '.join(families)})"


def _check_types(what: str, a: Addressable, b: Addressable, c: Addressable) -> None:
    wanted = ACCUMULATORS.get(str(a.dtype))
    if a.dtype != b.dtype or wanted is None or c.dtype != wanted:
        notes = [f"{role} is {memory.describe()}" for role, memory in (("A", a), ("B", b), ("C", c))]
        legal = ", ".join(f"{inputs} -> {result}{_families_with(DType(inputs).mlir)}"
                          for inputs, result in ACCUMULATORS.items())
        raise TileError(f"{what}: no product of {a.dtype} and {b.dtype} into {c.dtype}", code="T121", notes=notes,
                        help=f"the Cube core computes {legal}")


__all__ = ["ACCUMULATORS", "GemmWarpPolicy", "gemm", "gemm_v0", "gemm_v0_fixp", "mma", "npuir_dot"]
