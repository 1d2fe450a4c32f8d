// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The tensors are opaque: each iteration stores somewhere, possibly over the store of the previous one. If the author
// declares the iterations independent, none waits for that; on chip they still share two slots.
// CHECK-LABEL: func.func @said
// CHECK:         scf.for
// CHECK:           hivm.hir.wait_flag[<PIPE_MTE3>, <PIPE_MTE2>
// CHECK-NOT:       pipe_barrier
// CHECK:         } {hivm.parallel_loop}
// CHECK-LABEL: func.func @not_said
// CHECK:         scf.for
// CHECK:           hivm.hir.pipe_barrier[<PIPE_MTE3>]
// CHECK-NEXT:      hivm.hir.store
module {
  func.func @said(%X: memref<64xf32, #hivm.address_space<gm>>, %Y: memref<640xf32, #hivm.address_space<gm>>, %by: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c9 = arith.constant 9 : index
    %p0 = arith.constant 0 : i64
    %p1 = arith.constant 256 : i64
    scf.for %i = %c0 to %c9 step %c1 {
      %a = hivm.hir.pointer_cast(%p0, %p1) : memref<64xf32, #hivm.address_space<ub>>
      %at = arith.muli %i, %by : index
      %to = memref.subview %Y[%at] [64] [1] : memref<640xf32, #hivm.address_space<gm>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<gm>>
      hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.store ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%to : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<gm>>)
    } {hivm.parallel_loop}
    return
  }
  func.func @not_said(%X: memref<64xf32, #hivm.address_space<gm>>, %Y: memref<640xf32, #hivm.address_space<gm>>, %by: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c9 = arith.constant 9 : index
    %p0 = arith.constant 0 : i64
    %p1 = arith.constant 256 : i64
    scf.for %i = %c0 to %c9 step %c1 {
      %a = hivm.hir.pointer_cast(%p0, %p1) : memref<64xf32, #hivm.address_space<ub>>
      %at = arith.muli %i, %by : index
      %to = memref.subview %Y[%at] [64] [1] : memref<640xf32, #hivm.address_space<gm>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<gm>>
      hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.store ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%to : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<gm>>)
    }
    return
  }
}
