// RUN: tilelang-npu opt %s -p assign-cores,split-conversions | filecheck %s
// RUN: tilelang-npu opt %s -p "assign-cores,split-conversions{enabled=false}" | filecheck %s --check-prefix SAME
// RUN: tilelang-npu opt %s -p "assign-cores,split-conversions{synchronise=false}" | filecheck %s --check-prefix SAME
// Two slots of x and y do not fit in UB. The tiles that MTE2 fills and MTE3 reads have the element type of the tensors; the
// round mode stays with the conversion.
// CHECK:      %x = tile.alloc "x" : memref<8x2752xbf16
// CHECK-NEXT: %x_1 = tile.alloc "x" : memref<8x2752xf32
// CHECK:      %y = tile.alloc "y" : memref<8x2752xbf16
// CHECK-NEXT: %y_1 = tile.alloc "y" : memref<8x2752xf32
// CHECK:      tile.copy %X to %x : {{.*}}gm>> to memref<8x2752xbf16
// CHECK-NEXT: tile.copy %x to %x_1 : {{.*}} to memref<8x2752xf32
// CHECK-NEXT: tile.elementwise
// CHECK-NEXT: tile.copy %y_1 to %y round "trunc" : {{.*}} to memref<8x2752xbf16
// CHECK-NEXT: tile.copy %y to %Y : {{.*}} to memref<8x2752xbf16, #hivm.address_space<gm>>
// SAME:       tile.copy %X to %x :
// SAME-NEXT:  tile.elementwise
// SAME-NEXT:  tile.copy %y to %Y round "trunc" :
func.func @k(%X: memref<8x2752xbf16, #hivm.address_space<gm>>, %Y: memref<8x2752xbf16, #hivm.address_space<gm>>) attributes {hacc.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<8x2752xf32, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<8x2752xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    tile.copy %X to %x : memref<8x2752xbf16, #hivm.address_space<gm>> to memref<8x2752xf32, #hivm.address_space<ub>>
    tile.elementwise "exp" ins(%x : memref<8x2752xf32, #hivm.address_space<ub>>) outs(%y : memref<8x2752xf32, #hivm.address_space<ub>>)
    tile.copy %y to %Y round "trunc" : memref<8x2752xf32, #hivm.address_space<ub>> to memref<8x2752xbf16, #hivm.address_space<gm>>
  } {tile.num_stages = 2 : i64}
  return
}
