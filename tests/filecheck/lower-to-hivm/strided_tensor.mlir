// RUN: tilelang-npu opt %s -p lower-to-hivm | filecheck %s
// The rows of a strided tensor are 100 elements apart, or a run-time number: the view of the argument has these strides.
// CHECK:      memref.reinterpret_cast %X to offset: [0], sizes: [4, 64], strides: [100, 1]
// CHECK-NEXT: memref.reinterpret_cast %Y to offset: [0], sizes: [4, 64], strides: [%S_1, 1]
// CHECK:      hivm.hir.load ins(%X_1 : memref<4x64xf32, strided<[100, 1]>, #hivm.address_space<gm>>)
// CHECK-NEXT: hivm.hir.store ins(%a : memref<4x64xf32, #hivm.address_space<ub>>) outs(%Y_1
func.func @k(%X: memref<?xf32, #hivm.address_space<gm>>, %Y: memref<?xf32, #hivm.address_space<gm>>, %S: index) attributes {hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c1 = arith.constant 1 : index
  %x = tile.strided_tensor %X [4, 64] strides [100, 1] : memref<?xf32, #hivm.address_space<gm>> to memref<4x64xf32, strided<[100, 1]>, #hivm.address_space<gm>>
  %y = tile.strided_tensor %Y [4, 64] strides [%S, 1] : memref<?xf32, #hivm.address_space<gm>> to memref<4x64xf32, strided<[?, 1]>, #hivm.address_space<gm>>
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %a = tile.alloc "a" : memref<4x64xf32, #hivm.address_space<ub>>
    tile.copy %x to %a : memref<4x64xf32, strided<[100, 1]>, #hivm.address_space<gm>> to memref<4x64xf32, #hivm.address_space<ub>>
    tile.copy %a to %y : memref<4x64xf32, #hivm.address_space<ub>> to memref<4x64xf32, strided<[?, 1]>, #hivm.address_space<gm>>
  }
  return
}
