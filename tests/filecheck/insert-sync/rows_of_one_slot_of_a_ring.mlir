// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Each iteration of the inner loop fills a separate row of the slot and then loads it: no row waits for the previous one,
// whichever slot it is in.
// CHECK:     scf.for
// CHECK:       scf.for
// CHECK-NOT:     <PIPE_MTE2>, <PIPE_V>
// CHECK:         hivm.hir.vbrc
// CHECK-NEXT:    hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>
// CHECK-NEXT:    hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>
// CHECK-NEXT:    hivm.hir.load
// CHECK-NEXT:  }
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 2048 : i64
  scf.for %k = %c0 to %n step %c1 {
    %u = hivm.hir.pointer_cast(%p0, %p1) : memref<8x64xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c8 step %c1 {
      %row = memref.subview %u[%i, 0] [1, 64] [1, 1] : memref<8x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
      hivm.hir.vbrc ins(%zero : f32) outs(%row : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>)
      hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%row : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>)
    }
    hivm.hir.store ins(%u : memref<8x64xf32, #hivm.address_space<ub>>) outs(%Y : memref<8x64xf32, #hivm.address_space<gm>>)
  }
  return
}
