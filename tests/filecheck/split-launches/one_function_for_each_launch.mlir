// RUN: tilelang-npu opt %s -p split-launches | filecheck %s
// Each function has its launch and the scalars that it needs; operations between two launches belong to the later one.
// CHECK:      func.func @k_1(%X: memref<64xf32, #hivm.address_space<gm>>, %n: index)
// CHECK-NEXT:   %c2 = arith.constant 2 : index
// CHECK-NEXT:   %half = arith.divui %n, %c2 : index
// CHECK-NEXT:   tile.launch(%half)
// CHECK-NOT:    tile.launch
// CHECK:        tile.fill
// CHECK-NOT:    tile.alloc "y"
// CHECK:        return
// CHECK:      func.func @k_2(%X: memref<64xf32, #hivm.address_space<gm>>, %n: index)
// CHECK-NEXT:   %c2 = arith.constant 2 : index
// CHECK-NEXT:   %c1 = arith.constant 1 : index
// CHECK-NEXT:   %more = arith.addi %n, %c1 : index
// CHECK-NEXT:   tile.launch(%c2)
// CHECK-NOT:    tile.fill
// CHECK:        tile.alloc "y"
// CHECK:        tile.copy
// CHECK:        arith.cmpi eq, %c, %more
// CHECK:        return
// CHECK-NOT:  func.func
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %n: index) {
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.divui %n, %c2 : index
  tile.launch(%half) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %one = arith.constant 1.0 : f32
    %x = tile.alloc "x" : memref<64xf32, #tile.scope<shared>>
    tile.fill %one into %x : f32 into memref<64xf32, #tile.scope<shared>>
    tile.copy %x to %X : memref<64xf32, #tile.scope<shared>> to memref<64xf32, #hivm.address_space<gm>>
  }
  %c1 = arith.constant 1 : index
  %more = arith.addi %n, %c1 : index
  tile.launch(%c2) sub_blocks 1 : i64 {
  ^bb0(%c: index):
    %y = tile.alloc "y" : memref<64xf32, #tile.scope<shared>>
    tile.copy %X to %y : memref<64xf32, #hivm.address_space<gm>> to memref<64xf32, #tile.scope<shared>>
    %last = arith.cmpi eq, %c, %more : index
    tile.copy %y to %X : memref<64xf32, #tile.scope<shared>> to memref<64xf32, #hivm.address_space<gm>>
  }
  return
}
