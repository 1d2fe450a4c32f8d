// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// A copy loads only elements within the tensor; a select after it replaces the elements beyond the end.
// CHECK-NOT:  scf.
// CHECK:      tile.region %X[%{{.*}}] [64]
// CHECK:      tile.elementwise "select"
func.func @k(%X: memref<100xf32, #hivm.address_space<gm>>) {
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  tile.launch(%c2) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %y = tile.alloc "y" : memref<64xf32, #tile.scope<shared>>
    tile.parallel [64] {
    ^bb0(%j: index):
      %from = arith.muli %block, %c64 : index
      %at = arith.addi %from, %j : index
      %there = arith.cmpi slt, %at, %c100 : index
      %v = scf.if %there -> (f32) {
        %one = memref.load %X[%at] : memref<100xf32, #hivm.address_space<gm>>
        scf.yield %one : f32
      } else {
        %zero = arith.constant 0.0 : f32
        scf.yield %zero : f32
      }
      memref.store %v, %y[%j] : memref<64xf32, #tile.scope<shared>>
    }
  }
  return
}
