"""Products of MX matrices, whose elements have a common scale in groups of 32: ``T.gemm_mx``, ``T.mma_mx`` and the buffers of
their scales.
"""

from __future__ import annotations

from tilelang_npu.errors import TileError
from tilelang_npu.language.allocate import allocate_buffer
from tilelang_npu.language.elements import ElementType, Extents, element_type
from tilelang_npu.language.matrix import Scales, as_matrix, emit_product, require_l0
from tilelang_npu.ops.scale_layouts import GROUP
from tilelang_npu.traced.buffers import Addressable, Buffer, Tile

_FORMATS = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float4_e2m1fn": "e2m1"}
"""The format that upstream's argument ``format`` names, for each element type of MX matrices."""


def alloc_L1_scale_a(shape: Extents, dtype: ElementType = "uint8") -> Buffer:
    """Allocate a buffer in L1 for the scales (m, k / 32) of the left matrix of ``T.gemm_mx``.

    Load it with ``T.copy(..., src_layout="MX_A_ND")``, or another layout of ``T.gemm_mx``. The sizes must be positive
    constants, the second one even.

    Example: ``T.alloc_L1_scale_a((128, 64 // 32))``

    Args:
        shape: the sizes.
        dtype: ``"uint8"`` or ``"float8_e8m0fnu"``.

    Raises:
        TileError: as ``T.alloc_shared``; T110, scales have no such element type; T120, the shape is no matrix, or the number of
            scales along k is odd.
    """
    return _alloc_scales("T.alloc_L1_scale_a", shape, dtype, 1)


def alloc_L1_scale_b(shape: Extents, dtype: ElementType = "uint8") -> Buffer:
    """Allocate a buffer in L1 for the scales (k / 32, n) of the right matrix of ``T.gemm_mx``.

    Load it with ``T.copy(..., src_layout="MX_B_ND")``, or another layout of ``T.gemm_mx``. The sizes must be positive
    constants, the first one even.

    Example: ``T.alloc_L1_scale_b((64 // 32, 128))``

    Raises:
        TileError: as ``T.alloc_L1_scale_a``.
    """
    return _alloc_scales("T.alloc_L1_scale_b", shape, dtype, 0)


def _alloc_scales(what: str, shape: Extents, dtype: ElementType, axis: int) -> Buffer:
    kind = element_type(dtype, what)
    if kind.stored != "uint8":
        raise TileError(f"{what}: the element type is {kind}", code="T110",
                        help='a scale is a byte, the biased exponent of a power of two: "uint8" or "float8_e8m0fnu"')
    made = allocate_buffer(what, shape, kind, "cbuf")
    sizes = made.dimensions
    count = sizes[axis] if len(sizes) == 2 else None
    if count is None or (isinstance(count, int) and count % 2):
        raise TileError(f"{what}: the shape is {list(sizes)}", code="T120",
                        help=f"one scale is for {GROUP} elements along k, and k must be a multiple of {2 * GROUP}: the scales"
                             f" of A are (m, k // {GROUP}), those of B (k // {GROUP}, n)")
    return made


def gemm_mx(A: Tile, B: Tile, C: Tile, scale_a: Tile, scale_b: Tile, init: object = False,
            format: str | None = None,  # noqa: A002 - upstream's name
            transpose_A: bool = False, transpose_B: bool = False) -> None:
    """Add the product of two MX matrices to ``C``, or write it to ``C`` if ``init`` is true (950).

    An MX matrix has a scale for each group of 32 elements along k: a power of two, whose biased exponent is a byte (the format
    e8m0: the byte 127 is 1, 255 is NaN). The product is that of the scaled elements, added up in float32: the 32 products of a
    group are added, and their sum is scaled.

    ``A`` (m, k) and ``B`` (k, n) must be in L1, ``C`` (m, n) in L0C; k must be a multiple of 64. The element types are
    float8_e4m3fn or float8_e5m2, also one of each, or float4_e2m1fn, which has two elements in each byte: the last axis has an
    even size, and a call passes an array of int8 or uint8 with half as many columns (or a tensor of
    ``torch.float4_e2m1fn_x2``). With ``format``, ``A`` and ``B`` can be bytes of uint8 that hold float8.

    The scales are loaded with ``T.copy(..., src_layout=...)``. In a global tensor the scales of two neighbouring groups are
    adjacent. The layouts, with the number g of pairs of groups (k = 64 g):

    | ``src_layout`` | tensor | also |
    |---|---|---|
    | ``MX_A_ND`` | (m, g, 2) | (m, 2 g) |
    | ``MX_A_DN`` | (g, m, 2) | (2 g, m) |
    | ``MX_B_ND`` | (g, n, 2) | (2 g, n) |
    | ``MX_B_DN`` | (n, g, 2) | (n, 2 g) |

    Example: ``T.gemm_mx(a, b, c, scales_a, scales_b, init=(k == 0))``

    Args:
        A, B: the matrices.
        C: the accumulator, of float32.
        scale_a: the scales of ``A``, (m, k / 32), of uint8 or float8_e8m0fnu.
        scale_b: the scales of ``B``, (k / 32, n).
        init: whether the product replaces the contents of ``C``.
        format: the format of the elements: ``"e4m3"``, ``"e5m2"``, or ``"e2m1"`` (upstream's ``"e2m1x2"``). Needed only for
            matrices of uint8; otherwise it must agree with the element type of ``A``.
        transpose_A: whether ``A`` is stored as (k, m).
        transpose_B: whether ``B`` is stored as (n, k).

    Raises:
        TileError: as ``T.gemm``; T120, also if the scales do not fit the matrices, or k is no multiple of 64; T121, there is no
            product of these element types; T145, ``format`` does not agree with them; T190, the format e1m2, and packed
            elements in rows of which upstream uses the first half.
    """
    _scaled_product("T.gemm_mx", A, B, C, scale_a, scale_b, init, format, bool(transpose_A), bool(transpose_B))


def mma_mx(A: Tile, B: Tile, C: Tile, scale_a: Tile, scale_b: Tile, init: object = False, scale_dtype: str = "uint8") -> None:
    """Add the product of MX matrices in L0A and L0B to ``C``, or write it to ``C`` if ``init`` is true (950).

    The kernel must copy the matrices into L0A and L0B itself; the scales stay in L1, from where the product takes them: the
    time of their way into L0 is not counted. Shapes, element types and values are as for ``T.gemm_mx``.

    Example: ``T.mma_mx(left, right, c, scales_a, scales_b, init=True)``

    Args:
        A, B: the matrices (m, k) and (k, n).
        C: the accumulator in L0C, of float32.
        scale_a, scale_b: the scales in L1, (m, k / 32) and (k / 32, n).
        init: whether the product replaces the contents of ``C``.
        scale_dtype: the type of the scales: ``"uint8"`` or a name of float8_e8m0fnu.

    Raises:
        TileError: as ``T.gemm_mx``; T122, also if ``A`` is not in L0A or ``B`` is not in L0B; T145, there is no such
            ``scale_dtype``.
    """
    what = "T.mma_mx"
    require_l0(what, A, B, "T.gemm_mx")
    if scale_dtype not in ("uint8", "float8_e8m0fnu", "float8_e8m0", "float8_e8m0_t", "e8m0_float8"):
        raise TileError(f"{what}: scale_dtype is {scale_dtype!r}", code="T145", help='write "uint8": scales are exponents')
    _scaled_product(what, A, B, C, scale_a, scale_b, init, None, transpose_a=False, transpose_b=False)


def _scaled_product(what: str, a: Tile, b: Tile, c: Tile, scale_a: Tile, scale_b: Tile, init: object, held: object,
                    transpose_a: bool, transpose_b: bool) -> None:
    left, right, result = (as_matrix(what, role, value) for role, value in (("A", a), ("B", b), ("C", c)))
    first, second = (_scales(what, role, value) for role, value in (("A", scale_a), ("B", scale_b)))
    bytes_hold = _format(what, left, right, held)
    if result.dtype != "float32":
        raise TileError(f"{what}: C is {result.describe()}", code="T121", help="the sums of MX matrices are float32")
    emit_product(what, a, b, c, None, init, transpose_a, transpose_b, scales=Scales(first, second, bytes_hold))


def _scales(what: str, role: str, value: object) -> Addressable:
    memory = as_matrix(what, f"the scale of {role}", value)
    if memory.dtype.stored != "uint8":
        raise TileError(f"{what}: the scales of {role} are {memory.describe()}", code="T121",
                        help="a scale is a byte, the biased exponent of a power of two: uint8 or float8_e8m0fnu")
    if memory.buffer.space not in ("cbuf", "shared"):
        raise TileError(f"{what}: the scales of {role} {memory.describe()} are not in L1", code="T122",
                        help="allocate them with T.alloc_L1_scale_a and T.alloc_L1_scale_b")
    return memory


def _format(what: str, a: Addressable, b: Addressable, given: object) -> str | None:
    """Returns the format of operands that are bytes; None where the element types say it.

    Raises:
        TileError: T121, T145, T190, as ``gemm_mx``.
    """
    name = str(given).removesuffix("x2") if given is not None else None
    if name == "e1m2":
        raise TileError(f"{what}: elements of format e1m2 are not simulated", code="T190", help="use e2m1")
    if name is not None and name not in _FORMATS.values():
        raise TileError(f"{what}: there is no format {given!r}", code="T145",
                        help="the formats are " + ", ".join(_FORMATS.values()))
    if a.dtype == b.dtype == "uint8" and name is not None:
        if name == "e2m1":
            raise TileError(f"{what}: A and B are bytes of uint8, and the format is e2m1", code="T190",
                            help='declare tensors and tiles as "float4_e2m1fn", which has two elements in each byte')
        return name
    kinds = {str(a.dtype), str(b.dtype)}
    if not kinds <= _FORMATS.keys() or (len(kinds) > 1 and "float4_e2m1fn" in kinds):
        raise TileError(f"{what}: no product of MX matrices of {a.dtype} and {b.dtype}", code="T121",
                        notes=[f"{role} is {memory.describe()}" for role, memory in (("A", a), ("B", b))],
                        help="the Cube core of the 950 multiplies float8_e4m3fn and float8_e5m2, and float4_e2m1fn with itself")
    if name is not None and name != _FORMATS[str(a.dtype)]:
        raise TileError(f"{what}: the format is {given}, and A is {a.describe()}", code="T145",
                        help="leave format out: the element types say it")
    return "e2m1" if a.dtype == "float4_e2m1fn" else None


__all__ = ["alloc_L1_scale_a", "alloc_L1_scale_b", "gemm_mx", "mma_mx"]
