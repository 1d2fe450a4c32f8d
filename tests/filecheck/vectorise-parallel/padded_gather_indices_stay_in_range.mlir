// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// y[0, 299 - k, 2 - i] = x[i], gathered row by row: a row of three has sixteen gather indices, and the thirteen padding
// indices are clamped so that they stay in range when 299 is subtracted in the last row.
// CHECK:      %[[LOW:[0-9]+]] = arith.constant 299 : i32
// CHECK-NEXT: tile.elementwise "max" ins(%[[ALONG:[a-z0-9_]+]], %[[LOW]]
// CHECK:      %[[HIGH:[0-9]+]] = arith.constant 911 : i32
// CHECK-NEXT: tile.elementwise "min" ins(%[[ALONG]], %[[HIGH]]
// CHECK:      scf.for
func.func @k() {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %x = tile.alloc "x" : memref<3xf16, #tile.scope<shared>>
    %y = tile.alloc "y" : memref<1x300x3xf16, #tile.scope<shared>>
    tile.parallel [3, 1, 300] {
    ^bb0(%i: index, %j: index, %k: index):
      %c2 = arith.constant 2 : index
      %c299 = arith.constant 299 : index
      %v = memref.load %x[%i] : memref<3xf16, #tile.scope<shared>>
      %row = arith.subi %c299, %k : index
      %column = arith.subi %c2, %i : index
      memref.store %v, %y[%j, %row, %column] : memref<1x300x3xf16, #tile.scope<shared>>
    }
  }
  return
}
