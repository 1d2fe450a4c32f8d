// RUN: tilelang-npu opt %s -p split-tiles | filecheck %s
// A tile that fits; one whose memory the author chose; and one whose rows are stored over rows that other strips load.
// CHECK-LABEL: @fits
// CHECK-NOT:   scf.for
// CHECK-LABEL: @by_hand
// CHECK-NOT:   scf.for
// CHECK-LABEL: @shifted
// CHECK-NOT:   scf.for
func.func @fits(%A: memref<64x64xf32, #hivm.address_space<gm>>) attributes {tile.dialect = "npuir"} {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%bx: index):
    %x = tile.alloc "x" : memref<64x64xf32, #tile.scope<fragment>>
    tile.copy %A to %x : memref<64x64xf32, #hivm.address_space<gm>> to memref<64x64xf32, #tile.scope<fragment>>
    tile.elementwise "exp" ins(%x : memref<64x64xf32, #tile.scope<fragment>>) outs(%x : memref<64x64xf32, #tile.scope<fragment>>)
    tile.copy %x to %A : memref<64x64xf32, #tile.scope<fragment>> to memref<64x64xf32, #hivm.address_space<gm>>
  }
  return
}
func.func @by_hand(%A: memref<512x512xf32, #hivm.address_space<gm>>) attributes {tile.dialect = "npuir"} {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%bx: index):
    %x = tile.alloc "x" : memref<512x512xf32, #hivm.address_space<ub>>
    tile.copy %A to %x : memref<512x512xf32, #hivm.address_space<gm>> to memref<512x512xf32, #hivm.address_space<ub>>
    tile.elementwise "exp" ins(%x : memref<512x512xf32, #hivm.address_space<ub>>) outs(%x : memref<512x512xf32, #hivm.address_space<ub>>)
    tile.copy %x to %A : memref<512x512xf32, #hivm.address_space<ub>> to memref<512x512xf32, #hivm.address_space<gm>>
  }
  return
}
func.func @shifted(%A: memref<513x513xf32, #hivm.address_space<gm>>) attributes {tile.dialect = "npuir"} {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%bx: index):
    %x = tile.alloc "x" : memref<512x512xf32, #tile.scope<fragment>>
    %0 = tile.region %A[0, 0] [512, 512] keep [0, 1] : memref<513x513xf32, #hivm.address_space<gm>> to memref<512x512xf32, strided<[513, 1]>, #hivm.address_space<gm>>
    tile.copy %0 to %x : memref<512x512xf32, strided<[513, 1]>, #hivm.address_space<gm>> to memref<512x512xf32, #tile.scope<fragment>>
    %1 = tile.region %A[1, 1] [512, 512] keep [0, 1] : memref<513x513xf32, #hivm.address_space<gm>> to memref<512x512xf32, strided<[513, 1], offset: 514>, #hivm.address_space<gm>>
    tile.copy %x to %1 : memref<512x512xf32, #tile.scope<fragment>> to memref<512x512xf32, strided<[513, 1], offset: 514>, #hivm.address_space<gm>>
  }
  return
}
