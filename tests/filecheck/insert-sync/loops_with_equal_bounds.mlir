// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Both loops have the same trip count. If the second loop overwrites data from before both loops, the first loop's barrier
// was executed.
// CHECK:      hivm.hir.vbrc
// CHECK:      scf.for
// CHECK-NEXT:   hivm.hir.pipe_barrier[<PIPE_V>]
// CHECK-NEXT:   hivm.hir.vadd
// CHECK-NEXT: }
// CHECK-NOT:  pipe_barrier[<PIPE_V>]
func.func @k(%wide: i32, %Y: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %n = arith.index_cast %wide : i32 to index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %p3 = arith.constant 768 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  %c = hivm.hir.pointer_cast(%p2) : memref<64xf32, #hivm.address_space<ub>>
  %d = hivm.hir.pointer_cast(%p3) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.vbrc ins(%zero : f32) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  scf.for %i = %c0 to %n step %c1 {
    hivm.hir.vadd ins(%b, %c : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
  }
  scf.for %j = %c0 to %n step %c1 {
    hivm.hir.vadd ins(%c, %c : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
    hivm.hir.store ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%Y : memref<64xf32, #hivm.address_space<gm>>)
  }
  return
}
