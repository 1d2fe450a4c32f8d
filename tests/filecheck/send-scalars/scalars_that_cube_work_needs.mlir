// RUN: tilelang-npu opt %s -p assign-cores,send-scalars | filecheck %s
// The read stays on the Vector core; its value goes to a workspace, from which each core reads it. Values that only the
// Vector core needs are not sent.
// CHECK:      %n = memref.load %x
// CHECK-NEXT: %sent = memref_ext.alloc_workspace() : memref<1xi32, #hivm.address_space<gm>>
// CHECK:      memref.store %n, %sent[
// CHECK-NEXT: %[[C:.*]] = memref.load %sent[{{.*}}] {hivm.tcore_type = #hivm.tcore_type<CUBE>}
// CHECK-NEXT: %[[V:.*]] = tile.by_core cube %[[C]] vector %n : i32
// CHECK-NEXT: %many = arith.index_cast %[[V]]
// CHECK-NEXT: scf.for
// CHECK:      hivm.hir.nd2nz
// CHECK:      %m = memref.load %x
// CHECK-NOT:  memref_ext.alloc_workspace
// CHECK:      hivm.hir.vadd
func.func @k(%A: memref<16x16xf16, #hivm.address_space<gm>>) attributes {hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %x = memref.alloc() : memref<8xi32, #hivm.address_space<ub>>
  %a = memref.alloc() : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>
  %n = memref.load %x[%c3] : memref<8xi32, #hivm.address_space<ub>>
  %many = arith.index_cast %n : i32 to index
  scf.for %i = %c0 to %many step %c1 {
    hivm.hir.nd2nz {dst_continuous} ins(%A : memref<16x16xf16, #hivm.address_space<gm>>) outs(%a : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>)
  }
  %m = memref.load %x[%c1] : memref<8xi32, #hivm.address_space<ub>>
  hivm.hir.vadd ins(%x, %m : memref<8xi32, #hivm.address_space<ub>>, i32) outs(%x : memref<8xi32, #hivm.address_space<ub>>)
  return
}
