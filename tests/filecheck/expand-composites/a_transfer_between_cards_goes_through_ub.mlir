// RUN: tilelang-npu opt %s -p expand-composites | filecheck %s
// CHECK-LABEL: func.func @put
// CHECK:         %x_to_y = tile.alloc "x_to_y" : memref<64xf32, #hivm.address_space<ub>>
// CHECK-NEXT:    tile.copy %x to %x_to_y
// CHECK-NEXT:    tile.call "shmem_ub_put_nbi" ins(%x_to_y, %pe : {{.*}}) outs(%y
// CHECK-NEXT:    return
func.func @put(%x: memref<64xf32, #hivm.address_space<gm>>, %y: memref<64xf32, #hivm.address_space<gm>>, %pe: index) {
  tile.call "shmem_put_nbi" ins(%x, %pe : memref<64xf32, #hivm.address_space<gm>>, index) outs(%y : memref<64xf32, #hivm.address_space<gm>>)
  return
}

// CHECK-LABEL: func.func @get
// CHECK:         %x_to_y = tile.alloc "x_to_y" : memref<4096xf32, #hivm.address_space<ub>>
// CHECK:         scf.for %[[AT:.*]] = %{{.*}} to %{{.*}} step
// CHECK-NEXT:      %[[FROM:.*]] = tile.region %x[%[[AT]]] [4096]
// CHECK-NEXT:      %[[TO:.*]] = tile.region %y[%[[AT]]] [4096]
// CHECK-NEXT:      tile.call "shmem_ub_get_nbi" ins(%[[FROM]], %pe : {{.*}}) outs(%x_to_y
// CHECK-NEXT:      tile.copy %x_to_y to %[[TO]]
func.func @get(%x: memref<8192xf32, #hivm.address_space<gm>>, %y: memref<8192xf32, #hivm.address_space<gm>>, %pe: index) {
  tile.call "shmem_get_nbi" ins(%x, %pe : memref<8192xf32, #hivm.address_space<gm>>, index) outs(%y : memref<8192xf32, #hivm.address_space<gm>>)
  return
}
