// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The quotient and the remainder of the iteration number select its tile, and an inner loop visits the tile's rows: 8 times
// 32 rows of a tile of 256. With nine iterations it reaches the next tile.
// CHECK-LABEL: @apart
// CHECK-NOT:     pipe_barrier
// CHECK-LABEL: @too_many
// CHECK:         hivm.hir.pipe_barrier[<PIPE_MTE3>]
func.func @apart(%Y: memref<8x512x64xf32, #hivm.address_space<gm>>, %vid: index, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %t = arith.constant 8 : index
  %p0 = arith.constant 0 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<32x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %r = %c0 to %t step %c1 {
      %tile = arith.remui %i, %c2 : index
      %first = arith.muli %tile, %c256 : index
      %half = arith.muli %vid, %c128 : index
      %begin = arith.addi %first, %half : index
      %at = arith.muli %r, %c32 : index
      %row = arith.addi %begin, %at : index
      %head = arith.divui %i, %c2 : index
      %y = memref.subview %Y[%head, %row, 0] [1, 32, 64] [1, 1, 1] : memref<8x512x64xf32, #hivm.address_space<gm>> to memref<32x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      hivm.hir.store ins(%a : memref<32x64xf32, #hivm.address_space<ub>>) outs(%y : memref<32x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>)
    }
  }
  return
}
func.func @too_many(%Y: memref<8x512x64xf32, #hivm.address_space<gm>>, %vid: index, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %t = arith.constant 9 : index
  %p0 = arith.constant 0 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<32x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %r = %c0 to %t step %c1 {
      %tile = arith.remui %i, %c2 : index
      %first = arith.muli %tile, %c256 : index
      %half = arith.muli %vid, %c128 : index
      %begin = arith.addi %first, %half : index
      %at = arith.muli %r, %c32 : index
      %row = arith.addi %begin, %at : index
      %head = arith.divui %i, %c2 : index
      %y = memref.subview %Y[%head, %row, 0] [1, 32, 64] [1, 1, 1] : memref<8x512x64xf32, #hivm.address_space<gm>> to memref<32x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      hivm.hir.store ins(%a : memref<32x64xf32, #hivm.address_space<ub>>) outs(%y : memref<32x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>)
    }
  }
  return
}
