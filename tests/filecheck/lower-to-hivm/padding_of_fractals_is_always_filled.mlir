// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// A load of rows that may end beyond the tensor. Where the tile's fractals hold no more than the tile, only a clipped load has
// anything to fill. Fractals of 20 rows hold 12 rows more, which every load has to fill.
// CHECK:      %[[PART:.*]] = arith.cmpi slt, %{{.*}}, %c32 : index
// CHECK:      hivm.hir.nd2nz {dst_continuous} {{.*}} init_out_buffer = true pad_value = %cst : f16 init_condition = %[[PART]] : i1
// CHECK:      hivm.hir.nd2nz {dst_continuous} {{.*}} init_out_buffer = true pad_value = %cst{{[_0-9]*}} : f16{{$}}
func.func @k(%A: memref<120x64xf16, #hivm.address_space<gm>>) {
  %c4 = arith.constant 4 : index
  tile.launch(%c4) sub_blocks 1 : i64 {
  ^bb0(%blk: index):
    %c32 = arith.constant 32 : index
    %row = arith.muli %blk, %c32 : index
    %a = tile.alloc "a" : memref<32x64xf16, #hivm.address_space<cbuf>>
    %b = tile.alloc "b" : memref<20x64xf16, #hivm.address_space<cbuf>>
    %r = tile.region %A[%row, 0] [32, 64] keep [0, 1] : memref<120x64xf16, #hivm.address_space<gm>> to memref<32x64xf16, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %r to %a : memref<32x64xf16, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<32x64xf16, #hivm.address_space<cbuf>>
    %last = arith.addi %row, %c32 : index
    %s = tile.region %A[%last, 0] [20, 64] keep [0, 1] : memref<120x64xf16, #hivm.address_space<gm>> to memref<20x64xf16, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %s to %b : memref<20x64xf16, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<20x64xf16, #hivm.address_space<cbuf>>
  }
  return
}
