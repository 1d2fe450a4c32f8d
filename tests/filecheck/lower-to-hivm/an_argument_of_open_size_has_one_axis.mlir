// RUN: tilelang-npu opt %s --split-input-file --verify-diagnostics -p assign-cores,lower-to-hivm | filecheck %s
// The sizes of a memref argument are no values of the kernel: a tensor whose size is known only at run time is a view of an argument with
// one axis.
// CHECK: error[T602]: X has 2 axes, and the size of one is known only at run time
// CHECK: help: pass the elements as memref<?x..>, and view them with tile.tensor
func.func @k(%X: memref<?x64xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
    %r = tile.region %X[0, 0] [16, 64] keep [0, 1] : memref<?x64xf32, #hivm.address_space<gm>> to memref<16x64xf32, strided<[64, 1]>, #hivm.address_space<gm>>
    tile.copy %r to %x : memref<16x64xf32, strided<[64, 1]>, #hivm.address_space<gm>> to memref<16x64xf32, #hivm.address_space<ub>>
  }
  return
}
// -----
// CHECK: hivm.hir.load
func.func @flat(%A: memref<?xf32, #hivm.address_space<gm>>, %n: index) {
  %X = tile.tensor %A [%n, 64] : memref<?xf32, #hivm.address_space<gm>> to memref<?x64xf32, #hivm.address_space<gm>>
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
    %r = tile.region %X[0, 0] [16, 64] keep [0, 1] : memref<?x64xf32, #hivm.address_space<gm>> to memref<16x64xf32, strided<[64, 1]>, #hivm.address_space<gm>>
    tile.copy %r to %x : memref<16x64xf32, strided<[64, 1]>, #hivm.address_space<gm>> to memref<16x64xf32, #hivm.address_space<ub>>
  }
  return
}
