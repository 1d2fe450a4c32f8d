// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// With a trip count of zero both loops run once, without work. If the second loop has work, the first loop had work in its
// first stage, and what it waited for is done.
// CHECK-LABEL: @alike
// CHECK:       hivm.hir.vbrc
// CHECK-NOT:   set_flag[<PIPE_V>, <PIPE_MTE3>
// CHECK:       scf.for %i
// This does not hold for a branch on another number.
// CHECK-LABEL: @by_another_number
// CHECK:       hivm.hir.vbrc
// CHECK-NEXT:  set_flag[<PIPE_V>, <PIPE_MTE3>
// CHECK:       scf.for %i
func.func @alike(%wide: i32, %more: i32, %Y: memref<64xf32, #hivm.address_space<gm>>, %X: memref<64xf32, #hivm.address_space<gm>>, %Z: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %n = arith.index_cast %wide : i32 to index
  %m = arith.index_cast %more : i32 to index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.addi %n, %c1 : index
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
  scf.for %i = %c0 to %end step %c1 {
    %first = arith.cmpi slt, %i, %n : index
    scf.if %first {
      hivm.hir.vadd ins(%c, %c : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.store ins(%b : memref<64xf32, #hivm.address_space<ub>>) outs(%Y : memref<64xf32, #hivm.address_space<gm>>)
    }
    %second = arith.cmpi sge, %i, %c1 : index
    scf.if %second {
      hivm.hir.store ins(%d : memref<64xf32, #hivm.address_space<ub>>) outs(%X : memref<64xf32, #hivm.address_space<gm>>)
    }
  }
  scf.for %j = %c0 to %end step %c1 {
    %third = arith.cmpi slt, %j, %n : index
    scf.if %third {
      hivm.hir.store ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%Z : memref<64xf32, #hivm.address_space<gm>>)
    }
  }
  return
}
func.func @by_another_number(%wide: i32, %more: i32, %Y: memref<64xf32, #hivm.address_space<gm>>, %X: memref<64xf32, #hivm.address_space<gm>>, %Z: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %n = arith.index_cast %wide : i32 to index
  %m = arith.index_cast %more : i32 to index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.addi %n, %c1 : index
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
  scf.for %i = %c0 to %end step %c1 {
    %first = arith.cmpi slt, %i, %n : index
    scf.if %first {
      hivm.hir.vadd ins(%c, %c : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.store ins(%b : memref<64xf32, #hivm.address_space<ub>>) outs(%Y : memref<64xf32, #hivm.address_space<gm>>)
    }
    %second = arith.cmpi sge, %i, %c1 : index
    scf.if %second {
      hivm.hir.store ins(%d : memref<64xf32, #hivm.address_space<ub>>) outs(%X : memref<64xf32, #hivm.address_space<gm>>)
    }
  }
  scf.for %j = %c0 to %end step %c1 {
    %third = arith.cmpi slt, %j, %m : index
    scf.if %third {
      hivm.hir.store ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%Z : memref<64xf32, #hivm.address_space<gm>>)
    }
  }
  return
}
