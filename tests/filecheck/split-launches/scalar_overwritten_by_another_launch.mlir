// RUN: tilelang-npu opt %s -p split-launches --verify-diagnostics --split-input-file | filecheck %s
// A scalar that is read before the first launch must not be overwritten before the launch that uses it.
// CHECK: error[T160]: this element of X is read outside T.Kernel, and overwritten before the T.Kernel at line 20 uses it
// CHECK: :12:3
// CHECK: read the element inside the T.Kernel that uses it
// CHECK: // -----
// CHECK: func.func @k_1
// CHECK-NOT: memref.load
// CHECK: func.func @k_2
// CHECK: memref.load
func.func @k(%X: memref<64xi32, #hivm.address_space<gm>>, %c1: index, %c0: index) {
  %n = memref.load %X[%c0] : memref<64xi32, #hivm.address_space<gm>>
  %m = arith.index_cast %n : i32 to index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %x = tile.alloc "x" : memref<64xi32, #tile.scope<shared>>
    tile.copy %x to %X : memref<64xi32, #tile.scope<shared>> to memref<64xi32, #hivm.address_space<gm>>
  }

  tile.launch(%m) sub_blocks 1 : i64 {
  ^bb0(%c: index):
  }
  return
}
// -----
func.func @k(%X: memref<64xi32, #hivm.address_space<gm>>, %c1: index, %c0: index) {
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %x = tile.alloc "x" : memref<64xi32, #tile.scope<shared>>
    tile.copy %x to %X : memref<64xi32, #tile.scope<shared>> to memref<64xi32, #hivm.address_space<gm>>
  }
  %n = memref.load %X[%c0] : memref<64xi32, #hivm.address_space<gm>>
  %m = arith.index_cast %n : i32 to index
  tile.launch(%m) sub_blocks 1 : i64 {
  ^bb0(%c: index):
  }
  return
}
