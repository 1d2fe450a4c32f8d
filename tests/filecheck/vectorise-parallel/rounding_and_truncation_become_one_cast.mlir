// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// A float that is rounded to nearest even and then converted to an integer is converted once, in that mode.
// CHECK-NOT:  tile.parallel
// CHECK:      tile.copy %a to %y round "rint"
// CHECK-NEXT: tile.copy %a to %z round "trunc"
func.func @k() {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %a = tile.alloc "a" : memref<16x64xf32, #tile.scope<shared>>
    %y = tile.alloc "y" : memref<16x64xi32, #tile.scope<shared>>
    %z = tile.alloc "z" : memref<16x64xi32, #tile.scope<shared>>
    tile.parallel [16, 64] {
    ^bb0(%i: index, %j: index):
      %v = memref.load %a[%i, %j] : memref<16x64xf32, #tile.scope<shared>>
      %near = math.roundeven %v : f32
      %whole = arith.fptosi %near : f32 to i32
      memref.store %whole, %y[%i, %j] : memref<16x64xi32, #tile.scope<shared>>
      %cut = arith.fptosi %v : f32 to i32
      memref.store %cut, %z[%i, %j] : memref<16x64xi32, #tile.scope<shared>>
    }
  }
  return
}
