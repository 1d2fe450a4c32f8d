// RUN: tilelang-npu opt %s -p alloc-extra-buffers | filecheck %s
// A gather copies its indices to scratch, and a scan its source; interleaving needs a block for each element, and the
// result.
// CHECK:      %[[G:.*]] = memref.alloc() {tile.scratch} : memref<64xi32, #hivm.address_space<ub>>
// CHECK-NEXT: hivm.hir.vgather {{.*}} temp_buffer(%[[G]] : memref<64xi32
// CHECK-NEXT: %[[C:.*]] = memref.alloc() {tile.scratch} : memref<256xf32, #hivm.address_space<ub>>
// CHECK-NEXT: hivm.hir.vcumsum {{.*}} temp_buffer(%[[C]] : memref<256xf32
// CHECK-NEXT: %[[I:.*]] = memref.alloc() {tile.scratch} : memref<640xf32, #hivm.address_space<ub>>
// CHECK-NEXT: hivm.hir.vinterleave {{.*}} temp_buffer(%[[I]] : memref<640xf32
func.func @k(%x: memref<4x64xf32, #hivm.address_space<ub>>, %i: memref<4x16xi32, #hivm.address_space<ub>>, %y: memref<4x16xf32, #hivm.address_space<ub>>, %s: memref<4x64xf32, #hivm.address_space<ub>>, %w: memref<4x32xf32, #hivm.address_space<ub>>) {
  hivm.hir.vgather ins(%x : memref<4x64xf32, #hivm.address_space<ub>>) indices(%i : memref<4x16xi32, #hivm.address_space<ub>>) outs(%y : memref<4x16xf32, #hivm.address_space<ub>>)
  hivm.hir.vcumsum ins(%x : memref<4x64xf32, #hivm.address_space<ub>>) outs(%s : memref<4x64xf32, #hivm.address_space<ub>>) cum_dims = [1] reverse = false
  hivm.hir.vinterleave ins(%y, %y : memref<4x16xf32, #hivm.address_space<ub>>, memref<4x16xf32, #hivm.address_space<ub>>) outs(%w : memref<4x32xf32, #hivm.address_space<ub>>) interleave_channel_nums = 2
  return
}
