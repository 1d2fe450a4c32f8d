// RUN: tilelang-npu opt %s -p assign-cores | filecheck %s
// The Vector core stores an element to GM if the kernel has one; a kernel of products alone needs no Vector core for it.
// CHECK-LABEL: @product
// CHECK-SAME:  hivm.func_core_type = #hivm.func_core_type<AIC>
// CHECK:       tile.copy %c to %X {hivm.tcore_type = #hivm.tcore_type<CUBE>}
// CHECK-NEXT:  memref.store %x, %X[%c0, %c0] {hivm.tcore_type = #hivm.tcore_type<CUBE>}
// CHECK-LABEL: @number
// CHECK-SAME:  hivm.func_core_type = #hivm.func_core_type<AIV>
// CHECK:       memref.store %x, %X[%c0, %c0] {hivm.tcore_type = #hivm.tcore_type<VECTOR>}
func.func @product(%X: memref<16x16xf32, #hivm.address_space<gm>>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %c = tile.alloc "c" : memref<16x16xf32, #hivm.address_space<cc>>
    tile.copy %c to %X : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
    memref.store %x, %X[%c0, %c0] : memref<16x16xf32, #hivm.address_space<gm>>
  }
  return
}
func.func @number(%X: memref<16x16xf32, #hivm.address_space<gm>>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    memref.store %x, %X[%c0, %c0] : memref<16x16xf32, #hivm.address_space<gm>>
  }
  return
}
