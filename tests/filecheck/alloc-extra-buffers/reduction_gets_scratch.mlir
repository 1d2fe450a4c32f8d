// RUN: tilelang-npu opt %s -p alloc-extra-buffers | filecheck %s
// A row reduction of 256 floats needs scratch for half of its elements; one of 64 floats, a single repeat, needs none.
// CHECK:      %[[T:.*]] = memref.alloc() {tile.scratch} : memref<1024xf32, #hivm.address_space<ub>>
// CHECK-NEXT: hivm.hir.vreduce <sum> {{.*}} temp_buffer(%[[T]] : memref<1024xf32
// CHECK-NEXT: hivm.hir.vreduce <sum>
// CHECK-NOT:  temp_buffer
func.func @k(%x: memref<8x256xf32, #hivm.address_space<ub>>, %y: memref<8x64xf32, #hivm.address_space<ub>>, %s: memref<8x1xf32, #hivm.address_space<ub>>) {
  hivm.hir.vreduce <sum> ins(%x : memref<8x256xf32, #hivm.address_space<ub>>) outs(%s : memref<8x1xf32, #hivm.address_space<ub>>) reduce_dims = [1]
  hivm.hir.vreduce <sum> ins(%y : memref<8x64xf32, #hivm.address_space<ub>>) outs(%s : memref<8x1xf32, #hivm.address_space<ub>>) reduce_dims = [1]
  return
}
