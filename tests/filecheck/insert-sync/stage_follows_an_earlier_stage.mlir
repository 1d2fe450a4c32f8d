// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// A second stage, two iterations after the first one, overwrites a buffer that was filled before the loop. When it runs, the
// first stage has run, with its barrier: no barrier is needed before the loop. This does not hold for a branch on another
// condition.
// CHECK-LABEL: func.func @stages
// CHECK:        hivm.hir.vbrc
// CHECK-NEXT:   hivm.hir.vbrc
// CHECK-NOT:    pipe_barrier
// CHECK:        scf.for
// CHECK:          scf.if
// CHECK-NEXT:       hivm.hir.pipe_barrier[<PIPE_V>]
// CHECK-NEXT:       hivm.hir.vadd
// CHECK:          scf.if
// CHECK-NEXT:       hivm.hir.vmul
// CHECK-NEXT:       hivm.hir.pipe_barrier[<PIPE_V>]
// CHECK-NEXT:       hivm.hir.vadd
// CHECK-LABEL: func.func @others
// CHECK:        hivm.hir.vbrc
// CHECK-NEXT:   hivm.hir.vbrc
// CHECK:        pipe_barrier[<PIPE_V>]
// CHECK:        scf.for
func.func @stages(%n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %half = arith.constant 5.0e-1 : f32
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %p3 = arith.constant 768 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  %z = hivm.hir.pointer_cast(%p2) : memref<64xf32, #hivm.address_space<ub>>
  %d = hivm.hir.pointer_cast(%p3) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.vbrc ins(%half : f32) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.vbrc ins(%half : f32) outs(%z : memref<64xf32, #hivm.address_space<ub>>)
  %end = arith.addi %n, %c2 : index
  scf.for %i = %c0 to %end step %c1 {
    %first = arith.cmpi slt, %i, %n : index
    scf.if %first {
      hivm.hir.vadd ins(%b, %b : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
    }
    %second = arith.cmpi sge, %i, %c2 : index
    scf.if %second {
      hivm.hir.vmul ins(%b, %b : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%z : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.vadd ins(%z, %z : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%d : memref<64xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
func.func @others(%n: index, %m: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %half = arith.constant 5.0e-1 : f32
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %p3 = arith.constant 768 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  %z = hivm.hir.pointer_cast(%p2) : memref<64xf32, #hivm.address_space<ub>>
  %d = hivm.hir.pointer_cast(%p3) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.vbrc ins(%half : f32) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.vbrc ins(%half : f32) outs(%z : memref<64xf32, #hivm.address_space<ub>>)
  %end = arith.addi %n, %c2 : index
  scf.for %i = %c0 to %end step %c1 {
    %first = arith.cmpi slt, %i, %m : index
    scf.if %first {
      hivm.hir.vadd ins(%b, %b : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
    }
    %second = arith.cmpi sge, %i, %c2 : index
    scf.if %second {
      hivm.hir.vmul ins(%b, %b : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%z : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.vadd ins(%z, %z : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%d : memref<64xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
