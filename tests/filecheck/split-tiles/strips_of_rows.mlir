// RUN: tilelang-npu opt %s -p split-tiles | filecheck %s
// The tile, its column of maxima and the statements on them are processed in strips of rows. The weights stay whole.
// CHECK-LABEL: @softmax
// CHECK:       %w = tile.alloc "w" : memref<4096xf32
// CHECK-NOT:   tile.alloc
// CHECK:       tile.copy %W to %w
// CHECK:       scf.for %strip = {{.*}} {
// CHECK:         %[[FIRST:.*]] = arith.muli %strip, %[[ROWS:.*]] : index
// CHECK:         %x = tile.alloc "x" : memref<[[N:[0-9]+]]x4096xf32, #tile.scope<fragment>>
// CHECK:         %m = tile.alloc "m" : memref<[[N]]xf32, #tile.scope<fragment>>
// CHECK:         %[[ROW:.*]] = arith.addi %{{.*}}, %[[FIRST]] : index
// CHECK:         tile.region %A[%[[ROW]], 0] [[[N]], 4096]
// CHECK:         %[[COLUMN:.*]] = tile.view %m : memref<[[N]]xf32, {{.*}} to memref<[[N]]x1xf32
// CHECK:         tile.reduce "reduce_max" ins(%x : {{.*}}) outs(%[[COLUMN]]
// CHECK:         tile.parallel [[[N]], 4096] {
// CHECK:           memref.load %x[%i, %j]
// CHECK:           memref.load %m[%i]
// CHECK:         tile.region %B[%{{.*}}, 0] [[[N]], 4096]
// CHECK:       } {tile.num_stages = 2 : i64}
func.func @softmax(%A: memref<512x4096xf32, #hivm.address_space<gm>>, %W: memref<4096xf32, #hivm.address_space<gm>>, %B: memref<512x4096xf32, #hivm.address_space<gm>>) attributes {tile.dialect = "npuir"} {
  %c4 = arith.constant 4 : index
  tile.launch(%c4) sub_blocks 1 : i64 {
  ^bb0(%bx: index):
    %x = tile.alloc "x" : memref<128x4096xf32, #tile.scope<fragment>>
    %m = tile.alloc "m" : memref<128xf32, #tile.scope<fragment>>
    %w = tile.alloc "w" : memref<4096xf32, #tile.scope<shared>>
    %c128 = arith.constant 128 : index
    %0 = arith.muli %bx, %c128 : index
    %1 = tile.region %A[%0, 0] [128, 4096] keep [0, 1] : memref<512x4096xf32, #hivm.address_space<gm>> to memref<128x4096xf32, strided<[4096, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %1 to %x : memref<128x4096xf32, strided<[4096, 1], offset: ?>, #hivm.address_space<gm>> to memref<128x4096xf32, #tile.scope<fragment>>
    tile.copy %W to %w : memref<4096xf32, #hivm.address_space<gm>> to memref<4096xf32, #tile.scope<shared>>
    %2 = tile.view %m : memref<128xf32, #tile.scope<fragment>> to memref<128x1xf32, #tile.scope<fragment>>
    tile.reduce "reduce_max" ins(%x : memref<128x4096xf32, #tile.scope<fragment>>) outs(%2 : memref<128x1xf32, #tile.scope<fragment>>) dims = [1]
    tile.parallel [128, 4096] {
    ^bb0(%i: index, %j: index):
      %3 = memref.load %x[%i, %j] : memref<128x4096xf32, #tile.scope<fragment>>
      %4 = memref.load %m[%i] : memref<128xf32, #tile.scope<fragment>>
      %5 = arith.subf %3, %4 : f32
      %6 = memref.load %w[%j] : memref<4096xf32, #tile.scope<shared>>
      %7 = arith.mulf %5, %6 : f32
      memref.store %7, %x[%i, %j] : memref<128x4096xf32, #tile.scope<fragment>>
    }
    %8 = tile.region %B[%0, 0] [128, 4096] keep [0, 1] : memref<512x4096xf32, #hivm.address_space<gm>> to memref<128x4096xf32, strided<[4096, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %x to %8 : memref<128x4096xf32, #tile.scope<fragment>> to memref<128x4096xf32, strided<[4096, 1], offset: ?>, #hivm.address_space<gm>>
  }
  return
}
