// RUN: tilelang-npu opt %s -p infer-scopes --verify-diagnostics | filecheck %s
// The loop reads the value in L1 and leaves it in L0C, from which no path leads to L1.
// CHECK: error[T202]: x is in L1 at the start of a loop and in L0C at the end of its iterations
// CHECK: help: use one buffer for each memory, and copy from one to the other
func.func @k(%X: memref<16x16xf32, #hivm.address_space<gm>>, %C: memref<16x16xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %true = arith.constant true
  %h = tile.alloc "h" : memref<16x16xf32, #tile.scope<shared>>
  %x = tile.alloc "x" : memref<16x16xf32, #tile.scope<fragment>>
  %c = tile.alloc "c" : memref<16x16xf32, #tile.scope<fragment>>
  tile.copy %X to %h : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #tile.scope<shared>>
  tile.copy %X to %x : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #tile.scope<fragment>>
  scf.for %i = %c0 to %c4 step %c1 {
    tile.gemm %x, %h into %c init %true : memref<16x16xf32, #tile.scope<fragment>>, memref<16x16xf32, #tile.scope<shared>> into memref<16x16xf32, #tile.scope<fragment>>
    tile.gemm %h, %h into %x init %true : memref<16x16xf32, #tile.scope<shared>>, memref<16x16xf32, #tile.scope<shared>> into memref<16x16xf32, #tile.scope<fragment>>
  }
  tile.copy %c to %C : memref<16x16xf32, #tile.scope<fragment>> to memref<16x16xf32, #hivm.address_space<gm>>
  return
}
