// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// Element types that legalise-types computes in a wider type are vectorised, and unsigned elements are compared as unsigned.
// CHECK:      func.func @half
// CHECK-NOT:  tile.parallel
// CHECK:      tile.elementwise "add" ins(%x, %x : memref<4x32xbf16, {{.*}}) outs(%x : memref<4x32xbf16
// CHECK:      func.func @bytes
// CHECK-NOT:  tile.parallel
// CHECK:      tile.elementwise "max" ins({{.*}} : memref<4x32xui8, {{.*}}, ui8) outs({{.*}} : memref<4x32xui8
func.func @half() {
  %x = tile.alloc "x" : memref<4x32xbf16, #tile.scope<shared>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %v = memref.load %x[%i, %j] : memref<4x32xbf16, #tile.scope<shared>>
    %w = arith.addf %v, %v : bf16
    memref.store %w, %x[%i, %j] : memref<4x32xbf16, #tile.scope<shared>>
  }
  return
}
func.func @bytes() {
  %x = tile.alloc "x" : memref<4x32xui8, #tile.scope<shared>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %v = memref.load %x[%i, %j] : memref<4x32xui8, #tile.scope<shared>>
    %s = builtin.unrealized_conversion_cast %v : ui8 to i8
    %many = arith.constant -56 : i8
    %m = arith.maxui %s, %many : i8
    %w = builtin.unrealized_conversion_cast %m : i8 to ui8
    memref.store %w, %x[%i, %j] : memref<4x32xui8, #tile.scope<shared>>
  }
  return
}
