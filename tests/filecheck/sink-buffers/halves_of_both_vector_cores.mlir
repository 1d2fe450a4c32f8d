// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// Both Vector cores together fill the workspace, so it becomes a ring. A tile in UB belongs to one core, and half of it
// keeps its old value.
// CHECK:      tile.alloc "x" : memref
// CHECK:      scf.for
// CHECK:        tile.alloc "w" slots 2
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<16x64xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  tile.launch(%c1) sub_blocks 2 : i64 explicit {
  ^bb0(%block: index, %vid: index):
    %w = tile.alloc "w" : memref<16x64xf32, #hivm.address_space<gm>>
    %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
    %a = tile.alloc "a" : memref<16x64xf32, #hivm.address_space<cbuf>>
    %h = tile.alloc "h" : memref<8x64xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c4 step %c1 {
      %c8 = arith.constant 8 : index
      %row = arith.muli %vid, %c8 : index
      tile.copy %X to %h : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
      %0 = tile.region %w[%row, 0] [8, 64] keep [0, 1] : memref<16x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %h to %0 : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %w to %a : memref<16x64xf32, #hivm.address_space<gm>> to memref<16x64xf32, #hivm.address_space<cbuf>>
      %1 = tile.region %x[%row, 0] [8, 64] keep [0, 1] : memref<16x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>
      tile.copy %h to %1 : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>
      tile.copy %x to %Y : memref<16x64xf32, #hivm.address_space<ub>> to memref<16x64xf32, #hivm.address_space<gm>>
    }
  }
  return
}
