// RUN: tilelang-npu opt %s -p assign-cores | filecheck %s
// Operations on L1 and L0 belong to the Cube core, operations on UB to the Vector core, and a loop with both to both.
// CHECK:      func.func @k({{.*}}) attributes {hivm.func_core_type = #hivm.func_core_type<MIX>}
// CHECK:      scf.for
// CHECK-NEXT:   tile.copy %X to %a {hivm.tcore_type = #hivm.tcore_type<CUBE>}
// CHECK-NEXT:   tile.gemm %a, %a into %c {{.*}}{hivm.tcore_type = #hivm.tcore_type<CUBE>}
// CHECK-NEXT:   tile.copy %c to %w {hivm.tcore_type = #hivm.tcore_type<CUBE>}
// CHECK-NEXT:   tile.copy %w to %u {hivm.tcore_type = #hivm.tcore_type<VECTOR>}
// CHECK-NEXT:   %e = memref.load %u[%i, %c0] {hivm.tcore_type = #hivm.tcore_type<VECTOR>}
// CHECK-NEXT:   %x = memref.load %X[%i, %c0] {hivm.tcore_type = #hivm.tcore_type<CUBE_OR_VECTOR>}
// CHECK-NEXT:   memref.store %x, %X[%i, %c0] {hivm.tcore_type = #hivm.tcore_type<VECTOR>}
// CHECK-NEXT:   hivm.hir.pipe_barrier[<PIPE_MTE3>] {hivm.tcore_type = #hivm.tcore_type<VECTOR>}
// CHECK-NEXT:   hivm.hir.pipe_barrier[<PIPE_ALL>] {hivm.tcore_type = #hivm.tcore_type<CUBE_OR_VECTOR>}
// CHECK-NEXT: } {hivm.tcore_type = #hivm.tcore_type<CUBE_OR_VECTOR>}
func.func @k(%X: memref<16x16xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %true = arith.constant true
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %a = tile.alloc "a" : memref<16x16xf32, #hivm.address_space<cbuf>>
    %c = tile.alloc "c" : memref<16x16xf32, #hivm.address_space<cc>>
    %w = tile.alloc "w" : memref<16x16xf32, #hivm.address_space<gm>>
    %u = tile.alloc "u" : memref<16x16xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c8 step %c1 {
      tile.copy %X to %a : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<cbuf>>
      tile.gemm %a, %a into %c init %true : memref<16x16xf32, #hivm.address_space<cbuf>>, memref<16x16xf32, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
      tile.copy %c to %w : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
      tile.copy %w to %u : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<ub>>
      %e = memref.load %u[%i, %c0] : memref<16x16xf32, #hivm.address_space<ub>>
      %x = memref.load %X[%i, %c0] : memref<16x16xf32, #hivm.address_space<gm>>
      memref.store %x, %X[%i, %c0] : memref<16x16xf32, #hivm.address_space<gm>>
      hivm.hir.pipe_barrier[<PIPE_MTE3>]
      hivm.hir.pipe_barrier[<PIPE_ALL>]
    }
  }
  return
}
