"""One instance of every op that the parser knows, with its attributes; ``TABLE`` has the ops without a text elsewhere in the
tests."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from dialects.helpers import Kernel
from dialects.test_round_trip import CASES, of_entry
from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError
from tilelang_npu.ops import elementwise

CONTEXT = make_context()
TESTS = Path(__file__).resolve().parents[1]
TYPES = {
    "n": "i32", "l": "i64", "x": "index", "f": "f32", "h": "f16", "b": "i1", "t": "tensor<4x8xf32>", "u": "tensor<4x8xi32>",
    "k": "tensor<4x8xi1>", "m": "memref<4x8xf32>", "v": "vector<4xf32>", "w": "vector<4xi32>", "q": "vector<4xi1>",
    "p": "!llvm.ptr", "s": "!llvm.struct<(i32, f32)>", "y": "memref<?xf32>", "d": "memref<1xi32>", "o": "tensor<8x4xf32>",
    "e": "tensor<4x16xf32>", "c": "tensor<4xi64>", "g": "tensor<4x4xf32>", "z": "index"}
"""The letters of the operands below."""

# Each line: ops | operands | result types | properties | regions or attributes
TABLE = """
arith.addui_extended | nn | i32, i1
arith.mului_extended arith.mulsi_extended hfusion.mulextui | nn | i32, i32
arith.minsi arith.maxui | nn | i32
arith.minimumf arith.maxnumf | ff | f32 | fastmath = #arith.fastmath<nnan>
math.absi math.ctlz math.cttz math.ctpop | n | i32
math.ipowi | nn | i32
math.acos math.acosh math.asin math.asinh math.atan math.atanh math.cbrt math.ceil math.cos math.cosh math.erf math.exp2 \
math.expm1 math.floor math.log10 math.log1p math.log2 math.log math.round math.rsqrt math.sin math.sinh math.tan math.tanh \
math.trunc | f | f32 | fastmath = #arith.fastmath<nnan>
math.atan2 math.copysign math.powf | ff | f32 | fastmath = #arith.fastmath<nnan>
math.fpowi | fn | f32 | fastmath = #arith.fastmath<nnan>
scf.execute_region | | | | ({ "scf.yield"() : () -> () })
scf.index_switch | x | | cases = array<i64: 2> | ({ "scf.yield"() : () -> () }, { "scf.yield"() : () -> () })
memref.assume_alignment | m | memref<4x8xf32> | alignment = 16 : i32
memref.alloca_scope | | | | ({ "memref.alloca_scope.return"() : () -> () })
memref.atomic_rmw | fmxx | f32 | kind = 1 : i64
memref.collapse_shape | m | memref<32xf32> | reassociation = [[0, 1]]
memref.expand_shape | m | memref<2x2x8xf32> | reassociation = [[0, 1], [2]], static_output_shape = array<i64: 2, 2, 8>
memref.extract_strided_metadata | m | memref<f32>, index, index, index, index, index
memref.dma_start | mxxmxxxdx | | operandSegmentSizes = array<i32: 1, 2, 1, 2, 1, 1, 1>
memref.dma_wait | dxx | | operandSegmentSizes = array<i32: 1, 1, 1>
cf.assert | b | | msg = "no"
affine.store | fmxz | | map = affine_map<()[s0, s1] -> (s0, s1)>
affine.vector_store | vmxz | | map = affine_map<()[s0, s1] -> (s0, s1)>
affine.vector_load | mxz | vector<4xf32> | map = affine_map<()[s0, s1] -> (s0, s1)>
affine.load | mxz | f32 | map = affine_map<()[s0, s1] -> (s0, s1)>
affine.if | x | | condition = affine_set<(d0) : (d0 >= 0)> | ({ "affine.yield"() : () -> () }, { })
affine.parallel | | | lowerBoundsMap = affine_map<() -> (0)>, lowerBoundsGroups = dense<1> : vector<1xi32>, upperBoundsMap = \
affine_map<() -> (8)>, upperBoundsGroups = dense<1> : vector<1xi32>, steps = [2], reductions = [] | ({ ^bb0(%i: index): \
"affine.yield"() : () -> () })
tensor.pack | to | tensor<8x4xf32> | inner_dims_pos = array<i64>, outer_dims_perm = array<i64: 1, 0>, static_inner_tiles = \
array<i64>, operandSegmentSizes = array<i32: 1, 1, 0, 0>
tensor.unpack | to | tensor<8x4xf32> | inner_dims_pos = array<i64>, outer_dims_perm = array<i64: 1, 0>, static_inner_tiles = \
array<i64>
tensor.cast | t | tensor<?x8xf32>
tensor.concat | tt | tensor<8x8xf32> | dim = 0 : i64
tensor.from_elements | ff | tensor<2xf32>
tensor.splat | f | tensor<4xf32>
linalg.matmul_transpose_a linalg.batch_matmul linalg.batch_matmul_transpose_a | ttg | tensor<4x4xf32> | operandSegmentSizes \
= array<i32: 2, 1>
linalg.abs linalg.ceil linalg.floor linalg.negf linalg.reciprocal linalg.round linalg.rsqrt linalg.square linalg.tanh \
linalg.erf linalg.exp linalg.log linalg.sqrt linalg.copy | tt | tensor<4x8xf32> | operandSegmentSizes = array<i32: 1, 1>
hfusion.bitcast hfusion.load hfusion.store | tt | tensor<4x8xf32> | operandSegmentSizes = array<i32: 1, 1>
linalg.div linalg.div_unsigned linalg.powf linalg.add linalg.sub linalg.max linalg.min linalg.mul | ttt | tensor<4x8xf32> | \
operandSegmentSizes = array<i32: 2, 1>
linalg.select hfusion.select | kttt | tensor<4x8xf32> | operandSegmentSizes = array<i32: 3, 1>
hfusion.elemwise_ternary hfusion.group_matmul | tttt | tensor<4x8xf32> | operandSegmentSizes = array<i32: 3, 1>
linalg.generic | tt | tensor<4x8xf32> | indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, \
d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: \
1, 1> | ({ ^bb0(%i: f32, %j: f32): "linalg.yield"(%i) : (f32) -> () })
linalg.transpose | to | tensor<8x4xf32> | permutation = array<i64: 1, 0> | ({ ^bb0(%i: f32, %j: f32): "linalg.yield"(%i) : \
(f32) -> () })
linalg.index | | index | dim = 0 : i64
linalg.quantized_matmul | uunnu | tensor<4x8xi32> | operandSegmentSizes = array<i32: 4, 1>
linalg.pooling_nchw_max linalg.conv_2d_nchw_fchw linalg.conv_2d_nhwgc_gfhwc linalg.conv_2d_nhwc_hwcf \
linalg.conv_2d_ngchw_gfchw linalg.conv_2d_ngchw_fgchw linalg.conv_2d_nhwc_fhwc | ttt | tensor<4x8xf32> | operandSegmentSizes \
= array<i32: 2, 1>, strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>
bufferization.alloc_tensor | x | tensor<?xf32> | operandSegmentSizes = array<i32: 1, 0, 0>
bufferization.clone | m | memref<4x8xf32>
bufferization.to_buffer | t | memref<4x8xf32>
vector.bitcast | v | vector<4xi32>
vector.broadcast | f | vector<4xf32>
vector.create_mask | x | vector<4xi1>
vector.extract | v | f32 | static_position = array<i64: 1>
vector.fma | vvv | vector<4xf32>
vector.gather | mxxwqv | vector<4xf32>
vector.insert | fv | vector<4xf32> | static_position = array<i64: 1>
vector.load | mxx | vector<4xf32>
vector.maskedload | mxxqv | vector<4xf32>
vector.maskedstore | mxxqv |
vector.multi_reduction | vf | f32 | kind = #vector.kind<add>, reduction_dims = array<i64: 0>
vector.print | v |
vector.reduction | v | f32 | kind = #vector.kind<add>
vector.scatter | mxxwqv |
vector.shape_cast | v | vector<2x2xf32>
vector.shuffle | vv | vector<2xf32> | mask = array<i64: 1, 2>
vector.store | vmxx |
vector.transfer_read | mxxf | vector<4xf32> | operandSegmentSizes = array<i32: 1, 2, 1, 0>, in_bounds = [true], \
permutation_map = affine_map<(d0, d1) -> (d1)>
vector.transfer_write | vmxx | | operandSegmentSizes = array<i32: 1, 1, 2, 0>, in_bounds = [true], permutation_map = \
affine_map<(d0, d1) -> (d1)>
llvm.ashr llvm.lshr llvm.sdiv llvm.udiv llvm.and llvm.srem llvm.urem llvm.xor llvm.or | nn | i32
llvm.add llvm.mul llvm.shl llvm.sub | nn | i32
llvm.mlir.addressof | | !llvm.ptr | global_name = @g
llvm.alloca | n | !llvm.ptr | elem_type = i32
llvm.bitcast | f | i32
llvm.fpext | h | f32
llvm.fptrunc | f | f16
llvm.sitofp | n | f32
llvm.inttoptr | l | !llvm.ptr
llvm.ptrtoint | p | i64
llvm.call_intrinsic | n | i32 | intrin = "llvm.abs", op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: 1, 0>, \
fastmathFlags = #llvm.fastmath<none>
llvm.call | n | i32 | callee = @g, op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: 1, 0>, fastmathFlags = \
#llvm.fastmath<none>, CConv = #llvm.cconv<ccc>, TailCallKind = #llvm.tailcallkind<none>
llvm.mlir.constant | | i64 | value = 0 : index
llvm.extractvalue | s | i32 | position = array<i64: 0>
llvm.insertvalue | sn | !llvm.struct<(i32, f32)> | position = array<i64: 0>
llvm.intr.fabs llvm.intr.ceil llvm.intr.cos llvm.intr.exp llvm.intr.floor llvm.intr.exp2 llvm.intr.log llvm.intr.log2 \
llvm.fneg llvm.intr.sin llvm.intr.sqrt | f | f32 | fastmathFlags = #llvm.fastmath<nnan>
llvm.fadd llvm.intr.copysign llvm.fdiv llvm.fmul llvm.intr.pow llvm.frem llvm.fsub llvm.intr.maxnum llvm.intr.minnum | ff | \
f32 | fastmathFlags = #llvm.fastmath<nnan>
llvm.fcmp | ff | i1 | predicate = 1 : i64, fastmathFlags = #llvm.fastmath<none>
llvm.intr.fma | fff | f32 | fastmathFlags = #llvm.fastmath<nnan>
llvm.func | | | sym_name = "h", function_type = !llvm.func<void (i32)>, CConv = #llvm.cconv<ccc>, linkage = \
#llvm.linkage<"external">, visibility_ = 0 : i64, unnamed_addr = 0 : i64 | ({ })
llvm.getelementptr | pn | !llvm.ptr | elem_type = f32, rawConstantIndices = array<i32: -2147483648>, noWrapFlags = 0 : i32
llvm.mlir.global | | | global_type = i32, sym_name = "g", linkage = #llvm.linkage<"internal">, addr_space = 0 : i32, value = \
1 : i32 | ({ })
llvm.icmp | nn | i1 | predicate = 1 : i64
llvm.inline_asm | n | i32 | asm_string = "nop", constraints = "=r,r", asm_dialect = 0 : i64
llvm.insertelement | vfn | vector<4xf32>
llvm.load | p | i32 | ordering = 2 : i64, alignment = 4 : i64
llvm.store | np | | ordering = 2 : i64, alignment = 4 : i64
llvm.intr.masked.store | vpq | | alignment = 16 : i32
llvm.return | |
llvm.sext llvm.zext | n | i64
llvm.trunc | l | i32 | overflowFlags = #llvm.overflow<none>
llvm.select | bff | f32 | fastmathFlags = #llvm.fastmath<nnan>
llvm.shufflevector | vv | vector<2xf32> | mask = array<i32: 1, 2>
llvm.intr.stackrestore | p |
llvm.intr.stacksave llvm.mlir.undef llvm.mlir.zero | | !llvm.ptr
llvm.unreachable ub.unreachable tile.yield | |
llvm.intr.vector.reduce.fadd llvm.intr.vector.reduce.fmul | fv | f32 | fastmathFlags = #llvm.fastmath<nnan>
hfusion.gather | tut | tensor<4x8xf32> | axis = 1 : i64
hfusion.gather_mask | tktc | tensor<4x8xf32>, tensor<4xi64>
hfusion.conv1d hfusion.conv2d hfusion.conv3d | ttt | tensor<4x8xf32>
hfusion.matmul_mx | ttttt | tensor<4x8xf32>
hfusion.atomic_cas | ttm |
hfusion.atomic_rmw | tm | | atomic_kind = #hfusion.atomic_kind<add>
hfusion.atomic_xchg | tmk |
hfusion.cumprod hfusion.cummax hfusion.cummin | t | tensor<4x8xf32> | cum_dims = array<i64: 0>, reverse = false
hfusion.isinf hfusion.isfinite hfusion.signbit | t | tensor<4x8xi1>
hfusion.erfinv hfusion.cyl_bessel_i0 | t | tensor<4x8xf32>
hfusion.hypot hfusion.nextafter | tt | tensor<4x8xf32>
hfusion.assert | k | | msg = "no"
hfusion.indirect_load | yutkt | tensor<4x8xf32>
hfusion.gather_load | yulktt | tensor<4x8xf32>
hfusion.scatter_store | utlky |
hfusion.indirect_store | yutk |
hfusion.stride_load | ytlfllll | tensor<4x8xf32>
hfusion.stride_store | ytlln |
hfusion.embedding_gather | yutlln | tensor<4x8xf32>
hfusion.gatherT | yutlnlnn | tensor<4x8xf32>
hfusion.index_put | yutnlnnl |
hfusion.scatterT | ytulnlnn | | operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1>
tile.by_core | nn | i32
tile.tensor | yx | memref<?xf32> | static_sizes = array<i64: -9223372036854775808>
tile.broadcast | mm |
tile.call | m | | fn = "f", operandSegmentSizes = array<i32: 1, 0>
tile.signal | m | | how = 0 : i64, fn = "shmem_signal_op"
tile.load_patches | mmxx | | geometry = array<i64: 5, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1>
tile.dump | m | | desc = 1 : i64, count = 2 : i64, shape = array<i64: 2>
tile.printf | n | | format = "n"
tile.print | n | | prefix = "n"
"""
TEXTS = ('func.func private @f(i32) -> i32', """
func.func @f(%a: memref<?x?xf16, #hivm.address_space<ub>>) {
  tile.copy %a to %a : memref<?x?xf16, #hivm.address_space<ub>> to memref<?x?xf16, #hivm.address_space<ub>>
  return
}
""", """
"func.func"() <{function_type = (i1) -> (), sym_name = "f"}> ({
^bb0(%b: i1):
  "llvm.cond_br"(%b)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
^bb1:
  "llvm.br"()[^bb2] : () -> ()
^bb2:
  "func.return"() : () -> ()
}) : () -> ()
""", """
func.func @f(%flag : i32) {
  cf.switch %flag : i32, [
    default: ^bb1,
    42: ^bb1
  ]
^bb1:
  return
}
""")


def _lines() -> list[tuple[str, str]]:
    """Each op of the table, with a module that has it."""
    found: list[tuple[str, str]] = []
    arguments = ", ".join(f"%{letter}: {type_}" for letter, type_ in TYPES.items())
    for row in TABLE.strip().splitlines():
        names, operands, results, properties, rest = ([part.strip() for part in row.split("|")] + [""] * 3)[:5]
        for name in names.split():
            values = ", ".join(f"%{letter}" for letter in operands)
            count = len(re.findall(r",(?![^<(]*[>)])", results)) + 1 if results else 0
            bound = f"%r:{count} = " if count > 1 else "%r = " if count else ""
            op = (f'{bound}"{name}"({values}) {f"<{{{properties}}}>" if properties else ""} {rest} : '
                  f'({", ".join(TYPES[letter] for letter in operands)}) -> ({results})')
            found.append((name, f"func.func @f({arguments}) {{\n  {op}\n  return\n}}"))
    return found


@cache
def known_ops() -> dict[str, type[Operation]]:
    """Every op of the dialects that can be read, by name."""
    for name in list(CONTEXT.registered_dialect_names):
        CONTEXT.get_dialect(name)
    return {op.name: op for op in CONTEXT.loaded_ops}


@cache
def samples() -> dict[str, str]:
    """A module for every op, in MLIR's generic form."""
    found: dict[str, str] = {}

    def add(module: ModuleOp) -> None:
        names = {op.name for op in module.walk()} - found.keys()
        if names:
            found.update(dict.fromkeys(names, print_module(module, generic=True)))

    for text in TEXTS:
        add(parse_module(text, verify=False))
    for name, text in _lines():
        try:
            module = parse_module(text, verify=False)
            found[name] = print_module(module, generic=True)
            add(module)
        except Exception as error:
            raise AssertionError(f"{name}: {error}") from error
    makers: list[Any] = [make for _, make, _ in CASES] + [of_entry(entry) for entry in elementwise()]
    for make in makers:
        k = Kernel()
        add(k.module(make(k)))
    for path in sorted(TESTS.rglob("*.mlir")):
        for text in re.split(r"^// -----.*\n?", path.read_text(), flags=re.MULTILINE):
            try:
                add(parse_module(text, verify=False))
            except TileError:  # there to be refused
                continue
    return found
