// RUN: tilelang-npu opt %s -p merge-core-loops | filecheck %s
// The Cube loop reads %p, which only the later Vector loop fills: both become one loop, with one body after the other.
// Operations between them move before it.
// CHECK:      tile.fill {{.*}} into %total
// CHECK-NEXT: scf.for [[K:%[a-z]+]] =
// CHECK:        arith.addi [[K]]
// CHECK-NEXT:   tile.copy %c to %s
// CHECK-NEXT:   tile.copy %p to %a
// CHECK-NEXT:   tile.copy %s to %u
// CHECK-NEXT:   tile.copy %h to %p
// CHECK-NEXT: }
// CHECK-NOT:  scf.for
func.func @k(%s: memref<32x32xf32, #hivm.address_space<gm>> {tile.scratch}, %p: memref<32x32xf16, #hivm.address_space<gm>> {tile.scratch}, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = tile.alloc "a" : memref<32x32xf16, #hivm.address_space<cbuf>>
  %c = tile.alloc "c" : memref<32x32xf32, #hivm.address_space<cc>>
  %u = tile.alloc "u" : memref<32x32xf32, #hivm.address_space<ub>>
  %h = tile.alloc "h" : memref<32x32xf16, #hivm.address_space<ub>>
  %total = tile.alloc "total" : memref<32x32xf32, #hivm.address_space<ub>>
  scf.for %k = %c0 to %c4 step %c1 {
    %next = arith.addi %k, %c1 : index
    tile.copy %c to %s : memref<32x32xf32, #hivm.address_space<cc>> to memref<32x32xf32, #hivm.address_space<gm>>
    tile.copy %p to %a : memref<32x32xf16, #hivm.address_space<gm>> to memref<32x32xf16, #hivm.address_space<cbuf>>
  }
  tile.fill %v into %total : f32 into memref<32x32xf32, #hivm.address_space<ub>>
  scf.for %j = %c0 to %c4 step %c1 {
    tile.copy %s to %u : memref<32x32xf32, #hivm.address_space<gm>> to memref<32x32xf32, #hivm.address_space<ub>>
    tile.copy %h to %p : memref<32x32xf16, #hivm.address_space<ub>> to memref<32x32xf16, #hivm.address_space<gm>>
  }
  return
}
