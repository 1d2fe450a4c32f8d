// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// if at + i < 20: y[at + i] = 1 is a copy, which is clipped at the end of y; if at + i < 19 is not.
// CHECK:      func.func @end
// CHECK-NOT:  scf.
// CHECK:      tile.copy
// CHECK-NOT:  scf.
// CHECK:      func.func @earlier
// CHECK:      scf.if
// CHECK:        memref.store
func.func @end(%y: memref<20xf32, #hivm.address_space<gm>>, %at: index) {
  tile.parallel [8] {
  ^bb0(%i: index):
    %c20 = arith.constant 20 : index
    %one = arith.constant 1.0 : f32
    %p = arith.addi %at, %i : index
    %inside = arith.cmpi slt, %p, %c20 : index
    scf.if %inside {
      memref.store %one, %y[%p] : memref<20xf32, #hivm.address_space<gm>>
    }
  }
  return
}
func.func @earlier(%y: memref<20xf32, #hivm.address_space<gm>>, %at: index) {
  tile.parallel [8] {
  ^bb0(%i: index):
    %c19 = arith.constant 19 : index
    %one = arith.constant 1.0 : f32
    %p = arith.addi %at, %i : index
    %inside = arith.cmpi slt, %p, %c19 : index
    scf.if %inside {
      memref.store %one, %y[%p] : memref<20xf32, #hivm.address_space<gm>>
    }
  }
  return
}
