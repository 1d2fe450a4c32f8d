// RUN: tilelang-npu opt %s -p 'vectorise-parallel{enabled=false}' | filecheck %s
// Point by point, an element of a tensor that may lie past the end is read and written only where it exists; its value is 0
// elsewhere. Elements of tiles, that always exist, or under a condition of the author get no condition.
// CHECK:      func.func @known
// CHECK:      %[[p:.*]] = arith.addi %at, %i
// CHECK:      %[[inside:.*]] = arith.cmpi slt, %[[p]], %{{.*}} : index
// CHECK-NEXT: scf.if %[[inside]] -> (f32)
// CHECK-NEXT:   memref.load %x[%[[p]]]
// CHECK:      } else {
// CHECK-NEXT:   arith.constant 0.000000e+00 : f32
// CHECK:      memref.store %{{.*}}, %u
// CHECK:      func.func @sizes_of_run_time
// CHECK:      memref.dim %y
// CHECK:      arith.andi
// CHECK-NEXT: scf.if
// CHECK-NEXT:   memref.store %{{.*}}, %y
// CHECK:      func.func @from_data
// CHECK:      %[[read:.*]] = arith.index_cast
// CHECK:      arith.cmpi slt, %[[read]]
// CHECK:      scf.if
// CHECK:      }
// CHECK-NEXT: memref.store %one, %y[%i]
func.func @known(%x: memref<20xf32, #hivm.address_space<gm>>, %at: index) {
  %u = tile.alloc "u" : memref<8xf32, #tile.scope<shared>>
  tile.parallel [8] {
  ^bb0(%i: index):
    %p = arith.addi %at, %i : index
    %v = memref.load %x[%p] : memref<20xf32, #hivm.address_space<gm>>
    memref.store %v, %u[%i] : memref<8xf32, #tile.scope<shared>>
  }
  return
}
func.func @sizes_of_run_time(%y: memref<?x20xf32, #hivm.address_space<gm>>, %at: index) {
  tile.parallel [8] {
  ^bb0(%i: index):
    %one = arith.constant 1.0 : f32
    %p = arith.addi %at, %i : index
    memref.store %one, %y[%p, %p] : memref<?x20xf32, #hivm.address_space<gm>>
  }
  return
}
func.func @from_data(%y: memref<20xf32, #hivm.address_space<gm>>, %n: memref<8xi32, #tile.scope<shared>>) {
  tile.parallel [8] {
  ^bb0(%i: index):
    %one = arith.constant 1.0 : f32
    %k = memref.load %n[%i] : memref<8xi32, #tile.scope<shared>>
    %p = arith.index_cast %k : i32 to index
    memref.store %one, %y[%p] : memref<20xf32, #hivm.address_space<gm>>
    memref.store %one, %y[%i] : memref<20xf32, #hivm.address_space<gm>>
  }
  return
}
// CHECK:      func.func @guarded
// CHECK:      scf.if
// CHECK-NEXT:   memref.store
// CHECK-NEXT: }
func.func @guarded(%y: memref<20xf32, #hivm.address_space<gm>>, %at: index) {
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
