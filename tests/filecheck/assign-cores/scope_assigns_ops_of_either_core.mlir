// RUN: tilelang-npu opt %s -p assign-cores | filecheck %s
// In T.Scope, operations of either core (a flag, a loop, a stored element) belong to the scope's core; the core of a copy
// follows from its memories.
// CHECK:      tile.on_core "cube" {
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_S>, <EVENT_ID0>] {hivm.tcore_type = #hivm.tcore_type<CUBE>}
// CHECK-NEXT:   scf.for
// CHECK-NEXT:     memref.load %X[%i, %c0] {hivm.tcore_type = #hivm.tcore_type<CUBE_OR_VECTOR>}
// CHECK-NEXT:     memref.store %x, %X[%i, %c0] {hivm.tcore_type = #hivm.tcore_type<CUBE>}
// CHECK-NEXT:   } {hivm.tcore_type = #hivm.tcore_type<CUBE>}
// CHECK:      tile.on_core "vector" {
// CHECK-NEXT:   hivm.hir.pipe_barrier[<PIPE_ALL>] {hivm.tcore_type = #hivm.tcore_type<VECTOR>}
// CHECK-NEXT:   scf.for
// CHECK-NEXT:     tile.copy %c to %X {hivm.tcore_type = #hivm.tcore_type<CUBE>}
// CHECK-NEXT:   } {hivm.tcore_type = #hivm.tcore_type<CUBE_OR_VECTOR>}
// CHECK:      tile.copy %u to %X {hivm.tcore_type = #hivm.tcore_type<VECTOR>}
func.func @k(%X: memref<16x16xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %c = tile.alloc "c" : memref<16x16xf32, #hivm.address_space<cc>>
    %u = tile.alloc "u" : memref<16x16xf32, #hivm.address_space<ub>>
    tile.on_core "cube" {
      hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_S>, <EVENT_ID0>]
      scf.for %i = %c0 to %c8 step %c1 {
        %x = memref.load %X[%i, %c0] : memref<16x16xf32, #hivm.address_space<gm>>
        memref.store %x, %X[%i, %c0] : memref<16x16xf32, #hivm.address_space<gm>>
      }
    }
    tile.on_core "vector" {
      hivm.hir.pipe_barrier[<PIPE_ALL>]
      scf.for %i = %c0 to %c8 step %c1 {
        tile.copy %c to %X : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
      }
    }
    tile.copy %u to %X : memref<16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, #hivm.address_space<gm>>
  }
  return
}
