// RUN: tilelang-npu opt %s -p infer-scopes | filecheck %s
// Scalar storage that an operation reduces is in UB, with all operations on it; storage that is only filled stays scalar,
// and each of its elements is stored.
// CHECK:      tile.alloc "a" : memref<8xf32, #hivm.address_space<ub>>
// CHECK:      tile.alloc "s" : memref<1xf32, #hivm.address_space<ub>>
// CHECK:      %[[N:.*]] = tile.alloc "n" : memref<4xf32, #tile.scope<local>>
// CHECK:      tile.fill %cst into %a
// CHECK:      scf.for %[[I:.*]] = %
// CHECK-NEXT:   memref.store %cst, %[[N]][%[[I]]]
// CHECK-NOT:  tile.fill
func.func @k(%X: memref<8xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cst = arith.constant 0.0 : f32
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %a = tile.alloc "a" : memref<8xf32, #tile.scope<local>>
    %s = tile.alloc "s" : memref<1xf32, #tile.scope<local>>
    %n = tile.alloc "n" : memref<4xf32, #tile.scope<local>>
    tile.fill %cst into %a : f32 into memref<8xf32, #tile.scope<local>>
    tile.fill %cst into %n : f32 into memref<4xf32, #tile.scope<local>>
    %x = memref.load %X[%c0] : memref<8xf32, #hivm.address_space<gm>>
    memref.store %x, %a[%c0] : memref<8xf32, #tile.scope<local>>
    tile.reduce "reduce_sum" ins(%a : memref<8xf32, #tile.scope<local>>) outs(%s : memref<1xf32, #tile.scope<local>>) dims = [0]
    %y = memref.load %s[%c0] : memref<1xf32, #tile.scope<local>>
    memref.store %y, %n[%c0] : memref<4xf32, #tile.scope<local>>
  }
  return
}
