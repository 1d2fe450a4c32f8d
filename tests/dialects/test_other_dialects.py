"""Invalid ops of MLIR's own dialects, with MLIR's messages; valid ones are in ``modules``.

If a distribution of MLIR is installed, its parser must refuse the same lines.
"""

from __future__ import annotations

from importlib import import_module

import pytest

from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.reports.mlir_bindings import new_context

HEAD = """\
memref.global "private" constant @table : memref<4xf32> = dense<1.0>
func.func @f(%n: index, %x: f32, %h: f16, %t: tensor<4x8xf32>, %r: tensor<8xf32>, %u: tensor<*xf32>, %s: tensor<2xindex>,
             %d: tensor<?xindex>, %m: memref<4x8xf32>, %k: memref<2xindex>, %i: tensor<5x1xindex>, %c: tensor<8x4xi32>) {
"""


def _generic(operands: str, segments: str, arguments: str, types: str, *, lower: str = "0") -> str:
    return (f'"scf.forall"({operands}) <{{operandSegmentSizes = array<i32: {segments}>, '
            f"staticLowerBound = array<i64: {lower}>, staticUpperBound = array<i64: 4>, "
            "staticStep = array<i64: 1>}> ({\n"
            f' ^bb0({arguments}):\n "scf.forall.in_parallel"() ({{\n ^bb0:\n }}) : () -> ()\n }}) : {types}')


COUNTS = "operand count and affine map dimension and symbol count must match"
LOOPS = [
    ("scf.forall (%a, %b) in (4) {\n }", "region expects 1 arguments"),
    ("scf.forall (%a) in (4) {\n } {mapping = [1, 2]}", "mapping attribute size must match op rank"),
    (_generic("%n", "0, 1, 0, 0", "%a: index", "(index) -> ()"), "expected 0 dynamic upper bound values"),
    (_generic("", "0, 0, 0, 0", "%a: index", "() -> ()", lower="0, 0"), "expected 1 lower bound values, got 2"),
    (_generic("", "0, 0, 0, 0", "%a: i32", "() -> ()"), "expects 0-th block argument to be an index"),
    ("%0 = " + _generic("%t", "0, 0, 0, 1", "%a: index, %o: tensor<8xf32>", "(tensor<4x8xf32>) -> tensor<4x8xf32>"),
     "type mismatch between 0-th output and corresponding block argument"),
    (_generic("%t", "0, 0, 0, 1", "%a: index, %o: tensor<4x8xf32>", "(tensor<4x8xf32>) -> ()"),
     "produces 0 results, but has only 1 outputs"),
    ("scf.forall (%a) in (4) {\n scf.forall.in_parallel {\n %0 = arith.addi %n, %n : index\n }\n }",
     "expected only tensor.parallel_insert_slice ops"),
    ("scf.forall.in_parallel {\n }", "'scf.forall.in_parallel' must be the last operation in its parent block"),
    ("%0 = scf.forall (%a) in (4) shared_outs(%o = %t) -> (tensor<4x8xf32>) {\n scf.forall.in_parallel {\n"
     " tensor.parallel_insert_slice %r into %o[%a, 0] [2, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>\n }\n }",
     "expected source type to be 'tensor<2x8xf32>' or a rank-reduced version"),
    ("%0 = scf.forall (%a) in (4) shared_outs(%o = %t) -> (tensor<4x8xf32>) {\n scf.forall.in_parallel {\n"
     " tensor.parallel_insert_slice %r into %o[%a] [8] [1] : tensor<8xf32> into tensor<4x8xf32>\n }\n }",
     "expected 2 offset values, got 1"),
    ("scf.parallel () = () to () step () {\n }", "needs at least one tuple element for lowerBound, upperBound and step"),
]
MAPS = [
    ("%0 = affine.max affine_map<(d0) -> (d0, 4)>(%n)[%n]", COUNTS),
    ("%0 = affine.min affine_map<(d0) -> (d0, 4)>()", COUNTS),
    ("%0 = affine.max affine_map<(d0) -> ()>(%n)", "affine map expect at least one result"),
    ("%0 = affine.apply affine_map<(d0) -> (d0, 4)>(%n)", "mapping must produce one value"),
    ("%0 = affine.for %i0 = 0 to 4 iter_args(%u0 = %x) -> (f32) {\n %1 = arith.addf %u0, %x : f32\n }",
     "parent of yield must have same number of results as the yield operands"),
    ("affine.for %i0 = affine_map<() -> ()>() to 4 {\n }", "expected affine map to have at least one result"),
    ('"affine.store"(%x, %m, %n) <{map = affine_map<(d0) -> (d0)>}> : (f32, memref<4x8xf32>, index) -> ()',
     "affine map num results must equal memref rank"),
    ('%0 = "affine.load"(%m, %n) <{map = affine_map<(d0, d1) -> (d0, d1)>}> : (memref<4x8xf32>, index) -> f32',
     "expects as many subscripts as affine map inputs"),
]
TENSORS = [
    ("%0 = tensor.generate %n {\n ^bb0(%a: index):\n tensor.yield %x : f32\n } : tensor<4xf32>",
     "must have as many index operands as dynamic extents in the result type"),
    ("%0 = tensor.generate %n {\n ^bb0(%a: index):\n tensor.yield %x : f32\n } : tensor<?x4xf32>",
     "must have one body argument per input dimension"),
    ("%0 = tensor.generate %n {\n ^bb0(%a: i32):\n tensor.yield %x : f32\n } : tensor<?xf32>",
     "all body arguments must be index"),
    ("%0 = tensor.generate %n {\n ^bb0(%a: index):\n tensor.yield %h : f16\n } : tensor<?xf32>",
     "body must be terminated with a `yield` operation of the tensor element type"),
    ("%0 = tensor.bitcast %t : tensor<4x8xf32> to tensor<4x8xi16>",
     "operand type 'tensor<4x8xf32>' and result type 'tensor<4x8xi16>' are cast incompatible"),
    ("%0 = tensor.bitcast %t : tensor<4x8xf32> to tensor<8x4xi32>",
     "operand type 'tensor<4x8xf32>' and result type 'tensor<8x4xi32>' are cast incompatible"),
    ("%0 = tensor.reshape %t(%s) : (tensor<4x8xf32>, tensor<2xindex>) -> tensor<32xf32>",
     "length of shape operand differs from the result's tensor rank"),
    ("%0 = tensor.reshape %t(%d) : (tensor<4x8xf32>, tensor<?xindex>) -> tensor<32xf32>",
     "cannot use shape operand with dynamic length to reshape to statically-ranked tensor type"),
    ("%0 = tensor.reshape %t(%s) : (tensor<4x8xf32>, tensor<2xindex>) -> tensor<2x8xf32>",
     "source and destination tensor should have the same number of elements"),
    ("%0 = tensor.reshape %u(%s) : (tensor<*xf32>, tensor<2xindex>) -> tensor<2x8xf16>",
     "element types of source and destination tensor types should be the same"),
    ("%0 = tensor.gather %t[%i] gather_dims([]) : (tensor<4x8xf32>, tensor<5x1xindex>) -> tensor<5x8xf32>",
     "gather_dims must be non-empty"),
    ("%0 = tensor.gather %t[%i] gather_dims([2]) : (tensor<4x8xf32>, tensor<5x1xindex>) -> tensor<5x8xf32>",
     "gather_dims value must be"),
    ("%0 = tensor.gather %t[%i] gather_dims([1, 0]) : (tensor<4x8xf32>, tensor<5x1xindex>) -> tensor<5x8xf32>",
     "gather_dims values must be strictly increasing"),
    ("%0 = tensor.gather %t[%i] gather_dims([0, 1]) : (tensor<4x8xf32>, tensor<5x1xindex>) -> tensor<5xf32>",
     "gather_dims length must match the size of last dimension of indices"),
    ("%0 = tensor.gather %t[%i] gather_dims([0]) : (tensor<4x8xf32>, tensor<5x1xindex>) -> tensor<5x4xf32>",
     "result type mismatch: expected 'tensor<5x1x8xf32>' or its rank-reduced variant 'tensor<5x8xf32>'"),
]
BUFFERS = [
    ("%0 = memref.get_global @nothing : memref<4xf32>", "'nothing' does not reference a valid global memref"),
    ("%0 = memref.get_global @f : memref<4xf32>", "'f' does not reference a valid global memref"),
    ("%0 = memref.get_global @table : memref<4xf16>",
     "result type 'memref<4xf16>' does not match type 'memref<4xf32>' of the global memref @table"),
    ("%0 = memref.reshape %m(%k) : (memref<4x8xf32>, memref<2xindex>) -> memref<2x16xf16>",
     "element types of source and destination memref types should be the same"),
    ("%0 = memref.reshape %m(%k) : (memref<4x8xf32>, memref<2xindex>) -> memref<32xf32>",
     "length of shape operand differs from the result's memref rank"),
]
GLOBALS = [
    ("memref.global @g : memref<?xf32>", "type should be static shaped memref, but got 'memref<?xf32>'"),
    ("memref.global @g : memref<4xf32> = uninitialized {alignment = 24 : i64}",
     "alignment attribute value 24 is not a power of 2"),
    ('"memref.global"() <{sym_name = "g", type = memref<4xf32>, initial_value = dense<1.0> : tensor<5xf32>}> : () -> ()',
     "initial value expected to be of type 'tensor<4xf32>', but was of type 'tensor<5xf32>'"),
    ('"memref.global"() <{sym_name = "g", type = memref<4xf32>, initial_value = 1 : i64}> : () -> ()',
     "initial value should be a unit or elements attribute"),
]
LINES = [*LOOPS, *MAPS, *TENSORS, *BUFFERS]


def _body(line: str) -> str:
    return f"{HEAD}{line}\nreturn\n}}\n"


def _refused(text: str) -> TileError:
    with pytest.raises(TileError) as caught:
        parse_module(text)
    assert caught.value.code == "T602"
    return caught.value


@pytest.mark.parametrize(("line", "message"), LINES)
def test_in_a_function(line: str, message: str) -> None:
    error = _refused(_body(line))
    assert error.message.split("' op ", 1)[1].startswith(message)
    assert error.location is not None
    assert error.location.line >= 4


@pytest.mark.parametrize(("line", "message"), GLOBALS)
def test_in_a_module(line: str, message: str) -> None:
    assert _refused(line).message.split("' op ", 1)[1].startswith(message)


@pytest.mark.parametrize("binding", ["iree.compiler", "jaxlib.mlir"])
def test_mlir_refuses_the_same(binding: str) -> None:
    pytest.importorskip(f"{binding}.ir", reason=f"{binding} is not installed")
    with new_context(binding):
        ir = import_module(f"{binding}.ir")
        ir.Module.parse(_body(""))
        taken = [text for text in (*(_body(line) for line, _ in LINES), *(line for line, _ in GLOBALS)) if _takes(ir, text)]
    assert taken == []


def _takes(ir: object, text: str) -> bool:
    try:
        return bool(ir.Module.parse(text))  # type: ignore[attr-defined]  # a module
    except Exception:  # noqa: BLE001  (each distribution has its own)
        return False


PACKED = ("%p: tensor<2x3x4x8xf32>, %t: tensor<12x16xf32>, %n: index, %x: f32, %h: f16, %o: tensor<?x?xf32>, "
          "%q: tensor<?x?x?x?xf32>")


@pytest.mark.parametrize("line", [
    "%0 = tensor.pack %t outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [4, 8] into %p :"
    " tensor<12x16xf32> -> tensor<2x3x4x8xf32>",
    "%0 = tensor.pack %o padding_value(%x : f32) inner_dims_pos = [1, 0] inner_tiles = [%n, 8] into %q {tag} :"
    " tensor<?x?xf32> -> tensor<?x?x?x?xf32>",
    "%0 = tensor.unpack %p outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [4, 8] into %t :"
    " tensor<2x3x4x8xf32> -> tensor<12x16xf32>",
    "%0 = tensor.unpack %q inner_dims_pos = [0, 1] inner_tiles = [%n, %n] into %o : tensor<?x?x?x?xf32> -> tensor<?x?xf32>",
])
def test_tiles(line: str) -> None:
    """Newer versions of MLIR call them ``linalg.pack``, so none is asked."""
    module = parse_module(f"func.func @f({PACKED}) {{\n  {line}\n  return\n}}")
    text = print_module(module)
    assert line in text
    assert print_module(parse_module(text)) == text
    assert print_module(parse_module(print_module(module, generic=True))) == text


@pytest.mark.parametrize(("line", "message"), [
    ("%0 = tensor.pack %t inner_dims_pos = [0, 1] inner_tiles = [0, 8] into %p : tensor<12x16xf32> -> tensor<2x3x4x8xf32>",
     "invalid zero tile factor"),
    ("%0 = tensor.pack %t inner_dims_pos = [0, 2] inner_tiles = [4, 8] into %p : tensor<12x16xf32> -> tensor<2x3x4x8xf32>",
     "invalid inner_dims_pos vector"),
    ("%0 = tensor.pack %t outer_dims_perm = [1, 1] inner_dims_pos = [0, 1] inner_tiles = [4, 8] into %p :"
     " tensor<12x16xf32> -> tensor<2x3x4x8xf32>", "invalid outer_dims_perm vector"),
    ("%0 = tensor.pack %t outer_dims_perm = [1] inner_dims_pos = [0, 1] inner_tiles = [4, 8] into %p :"
     " tensor<12x16xf32> -> tensor<2x3x4x8xf32>", "outer_dims_perm must be a permutation or empty"),
    ("%0 = tensor.pack %t inner_dims_pos = [0, 1] inner_tiles = [4] into %p : tensor<12x16xf32> -> tensor<2x3x4x8xf32>",
     "tiling factors must equal the number of dimensions to tile"),
    ("%0 = tensor.pack %t inner_dims_pos = [0] inner_tiles = [4] into %p : tensor<12x16xf32> -> tensor<2x3x4x8xf32>",
     "packed rank != (unpacked rank + num tiling factors), got 4 != 3"),
    ("%0 = tensor.pack %t inner_dims_pos = [0, 1] inner_tiles = [4, 8] into %p : tensor<12x16xf32> -> tensor<2x3x4x8xf32>",
     "the shape of output is not large enough to hold the packed data. Expected at least tensor<3x2x4x8xf32>, got"
     " tensor<2x3x4x8xf32>"),
    ("%0 = tensor.unpack %p outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [8, 4] into %t :"
     " tensor<2x3x4x8xf32> -> tensor<12x16xf32>", "mismatch in inner tile sizes specified and shaped of tiled dimension"),
    ("%0 = tensor.pack %t outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [5, 8] into %z :"
     " tensor<12x16xf32> -> tensor<2x3x5x8xf32>", "invalid tile factor or output size provided. Only full tiles are supported"),
    ("%0 = tensor.pack %t padding_value(%h : f16) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [5, 8]"
     " into %z : tensor<12x16xf32> -> tensor<2x3x5x8xf32>", "expected padding_value has 'f32' but got: 'f16'"),
])
def test_tiles_that_do_not_fit(line: str, message: str) -> None:
    error = _refused(f"func.func @f({PACKED}, %z: tensor<2x3x5x8xf32>) {{\n  {line}\n  return\n}}")
    assert error.message.split("' op ", 1)[1].startswith(message)


def test_a_branch_that_ends_in_an_op_of_others() -> None:
    """It may leave out scf.yield as any other may, and it is not written either."""
    text = 'func.func @f(%c: i1) {\n  scf.if %c {\n    "a.b"() : () -> ()\n  } else {\n    "a.b"() : () -> ()\n  }\n  return\n}'
    module = parse_module(text, allow_unregistered=True)
    written = print_module(module)
    assert "scf.yield" not in written
    assert print_module(module, generic=True).count("scf.yield") == 2
    assert print_module(parse_module(written, allow_unregistered=True)) == written


@pytest.mark.parametrize("line", [
    "%0, %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],"
    " iterator_types = [\"parallel\"]}"
    " outs(%r, %r : tensor<8xf32>, tensor<8xf32>) {\n  ^bb0(%a: f32, %b: f32):\n    linalg.yield %a, %b : f32, f32\n  }"
    " -> (tensor<8xf32>, tensor<8xf32>)",
    "%0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = [\"parallel\"]}"
    " outs(%r : tensor<8xf32>) {\n  ^bb0(%a: f32):\n    linalg.yield %a : f32\n  } -> (tensor<8xf32>)",
    "%0 = linalg.broadcast ins(%r : tensor<8xf32>) outs(%t : tensor<4x8xf32>) dimensions = [0] {tag}",
    "%0 = linalg.transpose ins(%t : tensor<4x8xf32>) outs(%v : tensor<8x4xf32>) permutation = [1, 0] {tag = 1 : i32}",
    "%0 = linalg.abs ins(%r : tensor<8xf32>) outs(%r : tensor<8xf32>) -> tensor<8xf32>",
    "%0 = linalg.select ins(%w, %x, %x : tensor<8xi1>, f32, f32) outs(%r : tensor<8xf32>) -> tensor<8xf32>",
])
def test_linalg(line: str) -> None:
    arguments = "%r: tensor<8xf32>, %t: tensor<4x8xf32>, %v: tensor<8x4xf32>, %w: tensor<8xi1>, %x: f32"
    module = parse_module(f"func.func @f({arguments}) {{\n  {line}\n  return\n}}")
    text = print_module(module)
    assert ("tag" in text) is ("tag" in line)
    assert print_module(parse_module(text)) == text
    assert print_module(parse_module(print_module(module, generic=True))) == text


def _transferred(map_: str, result: str, mask: str) -> str:
    whole = "tensor<4x8xf32>, index, index, f32"
    return (f'func.func @f(%t: tensor<4x8xf32>, %i: index, %x: f32, %m: {mask}) {{\n  %0 = "vector.transfer_read"'
            f"(%t, %i, %i, %x, %m) <{{in_bounds = [true, true], permutation_map = affine_map<{map_}>,"
            f" operandSegmentSizes = array<i32: 1, 2, 1, 1>}}> : ({whole}, {mask}) -> {result}\n  return\n}}")


def test_a_mask_has_the_axes_of_what_is_read() -> None:
    """The axes have the order of the memref and not of the vector; broadcast axes are left out."""
    parse_module(_transferred("(d0, d1) -> (d1, d0)", "vector<8x4xf32>", "vector<4x8xi1>"))
    parse_module(_transferred("(d0, d1) -> (d1, 0)", "vector<8x4xf32>", "vector<8xi1>"))
    for map_, mask, wanted in (("(d1, d0)", "vector<8x4xi1>", "4x8"), ("(d1, 0)", "vector<8x4xi1>", "8")):
        error = _refused(_transferred(f"(d0, d1) -> {map_}", "vector<8x4xf32>", mask))
        assert f"inferred mask type ('vector<{wanted}xi1>') and mask operand type ('{mask}') don't match" in error.message
    error = _refused(_transferred("(d0, d1) -> (d1, d1)", "vector<8x8xf32>", "vector<8xi1>"))
    assert "requires a permutation_map that is a permutation" in error.message


@pytest.mark.parametrize(("default", "case", "reported"), [
    ("%x : f32", "%x, %k : f32, i32", ""),
    ("", "%x, %k : f32, i32", "branch has 0 operands for successor #0, but target block has 1"),
    ("%k : i32", "%x, %k : f32, i32", "type mismatch for bb argument #0 of successor #0"),
    ("%x : f32", "%x : f32", "branch has 1 operands for successor #1, but target block has 2"),
    ("%x : f32", "%k, %k : i32, i32", "type mismatch for bb argument #0 of successor #1")])
def test_a_block_takes_what_a_switch_hands_to_it(default: str, case: str, reported: str) -> None:
    cases = f"default: ^a{f'({default})' if default else ''},\n 7: ^b({case})"
    text = (f"func.func @f(%k: i32, %x: f32) {{\n cf.switch %k : i32, [\n {cases}\n ]\n^a(%y: f32):\n return\n"
            "^b(%z: f32, %n: i32):\n return\n}")
    if not reported:
        assert "cf.switch" in print_module(parse_module(text))
        return
    assert reported in _refused(text).message


@pytest.mark.parametrize(("then", "other", "reported"), [
    ("", "scf.yield %x : f32", r"a branch yields \(\), but the results of the op are \(f32\)"),
    ("scf.yield %x : f32", "", r"a branch yields \(\), but the results of the op are \(f32\)"),
    ("scf.yield %x : f32", "scf.yield %c : i1", r"a branch yields \(i1\), but the results of the op are \(f32\)"),
    ("scf.yield %x : f32", "scf.yield %x : f32", "")])
def test_the_branches_of_an_if_yield_its_results(then: str, other: str, reported: str) -> None:
    branch = f"%r = scf.if %c -> (f32) {{\n{then}\n}} else {{\n{other}\n}}"
    text = f"func.func @f(%c: i1, %x: f32) {{\n{branch}\nreturn\n}}"
    if not reported:
        parse_module(text).verify()
        return
    with pytest.raises(TileError, match=reported):
        parse_module(text)
