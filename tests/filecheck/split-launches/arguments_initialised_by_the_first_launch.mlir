// RUN: tilelang-npu opt %s -p split-launches | filecheck %s
// Arguments that the first launch writes are initialised when the second one starts; others are not.
// CHECK: func.func @k_1(%P: memref<64xf32, #hivm.address_space<gm>> {tile.scratch}, %Q: memref<64xf32, #hivm.address_space<gm>> {tile.scratch})
// CHECK: func.func @k_2(%P: memref<64xf32, #hivm.address_space<gm>>, %Q: memref<64xf32, #hivm.address_space<gm>> {tile.scratch})
func.func @k(%P: memref<64xf32, #hivm.address_space<gm>> {tile.scratch}, %Q: memref<64xf32, #hivm.address_space<gm>> {tile.scratch}) {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %x = tile.alloc "x" : memref<64xf32, #tile.scope<shared>>
    tile.copy %x to %P : memref<64xf32, #tile.scope<shared>> to memref<64xf32, #hivm.address_space<gm>>
  }
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%c: index):
    %y = tile.alloc "y" : memref<64xf32, #tile.scope<shared>>
    tile.copy %P to %y : memref<64xf32, #hivm.address_space<gm>> to memref<64xf32, #tile.scope<shared>>
    tile.copy %y to %Q : memref<64xf32, #tile.scope<shared>> to memref<64xf32, #hivm.address_space<gm>>
  }
  return
}
