// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// A quotient of data by a power of two is a shift, arithmetic for signed types; a remainder is the low bits. By another
// constant it is a division that truncates, and one less where the rest is negative. With a divisor that is no constant, the
// points are computed one by one.
// CHECK-LABEL: func.func @shifts
// CHECK-NOT:   scf.for
// CHECK:       tile.elementwise "bitwise_rshift" ins(%x, {{.*}} {is_signed = true, round = false}
// CHECK:       tile.elementwise "bitwise_and" ins(%x, {{.*}} outs(%z
// CHECK-LABEL: func.func @seven
// CHECK-NOT:   scf.for
// CHECK:       tile.elementwise "div"
// CHECK:       tile.elementwise "mul"
// CHECK:       tile.elementwise "sub"
// CHECK:       tile.elementwise "max"
// CHECK:       tile.elementwise "min"
// CHECK:       tile.elementwise "add"
// CHECK-LABEL: func.func @another
// CHECK:       scf.for
func.func @shifts() {
  %x = tile.alloc "x" : memref<64xi32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<64xi32, #tile.scope<shared>>
  %z = tile.alloc "z" : memref<64xi32, #tile.scope<shared>>
  tile.parallel [64] {
  ^bb0(%k: index):
    %c8 = arith.constant 8 : i32
    %v = memref.load %x[%k] : memref<64xi32, #tile.scope<shared>>
    %p = arith.floordivsi %v, %c8 : i32
    memref.store %p, %y[%k] : memref<64xi32, #tile.scope<shared>>
    %r = arith.remui %v, %c8 : i32
    memref.store %r, %z[%k] : memref<64xi32, #tile.scope<shared>>
  }
  return
}
func.func @seven() {
  %x = tile.alloc "x" : memref<64xi32, #tile.scope<shared>>
  tile.parallel [64] {
  ^bb0(%k: index):
    %c7 = arith.constant 7 : i32
    %v = memref.load %x[%k] : memref<64xi32, #tile.scope<shared>>
    %p = arith.floordivsi %v, %c7 : i32
    memref.store %p, %x[%k] : memref<64xi32, #tile.scope<shared>>
  }
  return
}
func.func @another() {
  %w = tile.alloc "w" : memref<64xi32, #tile.scope<shared>>
  %x = tile.alloc "x" : memref<64xi32, #tile.scope<shared>>
  tile.parallel [64] {
  ^bb0(%k: index):
    %d = memref.load %w[%k] : memref<64xi32, #tile.scope<shared>>
    %v = memref.load %x[%k] : memref<64xi32, #tile.scope<shared>>
    %p = arith.floordivsi %v, %d : i32
    memref.store %p, %x[%k] : memref<64xi32, #tile.scope<shared>>
  }
  return
}
