// RUN: tilelang-npu opt %s -p assign-cores,send-scalars | filecheck %s
// A tile that is loaded by the sub-block index differs between the Vector cores: nothing is sent, and split-cores refuses
// the kernel.
// CHECK-NOT:  memref_ext.alloc_workspace
// CHECK-NOT:  tile.by_core
func.func @k(%A: memref<16x16xf16, #hivm.address_space<gm>>, %N: memref<2x8xi32, #hivm.address_space<gm>>) attributes {hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %half = hivm.hir.get_sub_block_idx -> i64
  %vid = arith.index_cast %half : i64 to index
  %x = memref.alloc() : memref<1x8xi32, #hivm.address_space<ub>>
  %y = memref.alloc() : memref<1x8xi32, #hivm.address_space<ub>>
  %a = memref.alloc() : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>
  %row = memref.subview %N[%vid, 0] [1, 8] [1, 1] : memref<2x8xi32, #hivm.address_space<gm>> to memref<1x8xi32, strided<[8, 1], offset: ?>, #hivm.address_space<gm>>
  hivm.hir.load ins(%row : memref<1x8xi32, strided<[8, 1], offset: ?>, #hivm.address_space<gm>>) outs(%y : memref<1x8xi32, #hivm.address_space<ub>>)
  hivm.hir.vadd ins(%y, %y : memref<1x8xi32, #hivm.address_space<ub>>, memref<1x8xi32, #hivm.address_space<ub>>) outs(%x : memref<1x8xi32, #hivm.address_space<ub>>)
  %n = memref.load %x[%c0, %c1] : memref<1x8xi32, #hivm.address_space<ub>>
  %many = arith.index_cast %n : i32 to index
  scf.for %i = %c0 to %many step %c1 {
    hivm.hir.nd2nz {dst_continuous} ins(%A : memref<16x16xf16, #hivm.address_space<gm>>) outs(%a : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>)
  }
  return
}
