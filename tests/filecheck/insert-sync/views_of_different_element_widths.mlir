// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Two views of the same bytes with elements of different widths: the load overlaps the addition in the second half, and is
// disjoint from the one in the first half.
// CHECK: hivm.hir.load
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.vadd
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.vadd
func.func @k(%X: memref<64xf16, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0_i64 = arith.constant 0 : i64
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %bytes = hivm.hir.pointer_cast(%c0_i64) : memref<256xi8, #hivm.address_space<ub>>
  %halves = memref.view %bytes[%c128][] : memref<256xi8, #hivm.address_space<ub>> to memref<64xf16, #hivm.address_space<ub>>
  %words = memref.view %bytes[%c0][] : memref<256xi8, #hivm.address_space<ub>> to memref<64xi32, #hivm.address_space<ub>>
  %first = memref.subview %words[0] [32] [1] : memref<64xi32, #hivm.address_space<ub>> to memref<32xi32, strided<[1]>, #hivm.address_space<ub>>
  %second = memref.subview %words[32] [32] [1] : memref<64xi32, #hivm.address_space<ub>> to memref<32xi32, strided<[1], offset: 32>, #hivm.address_space<ub>>
  hivm.hir.load ins(%X : memref<64xf16, #hivm.address_space<gm>>) outs(%halves : memref<64xf16, #hivm.address_space<ub>>)
  hivm.hir.vadd ins(%first, %first : memref<32xi32, strided<[1]>, #hivm.address_space<ub>>, memref<32xi32, strided<[1]>, #hivm.address_space<ub>>) outs(%first : memref<32xi32, strided<[1]>, #hivm.address_space<ub>>)
  hivm.hir.vadd ins(%second, %second : memref<32xi32, strided<[1], offset: 32>, #hivm.address_space<ub>>, memref<32xi32, strided<[1], offset: 32>, #hivm.address_space<ub>>) outs(%second : memref<32xi32, strided<[1], offset: 32>, #hivm.address_space<ub>>)
  return
}
