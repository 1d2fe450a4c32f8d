// RUN: tilelang-npu opt %s -p tidy | filecheck %s
// Equal pure operations become one, and unused ones are removed; an operation on memory stays.
// CHECK:      func.func @k
// CHECK-NEXT:   %[[S:.*]] = arith.addi %a, %b
// CHECK-NEXT:   %[[P:.*]] = arith.muli %[[S]], %[[S]]
// CHECK-NEXT:   %{{.*}} = arith.index_cast %[[P]]
// CHECK-NEXT:   memref.store
// CHECK-NEXT:   return
func.func @k(%a: i32, %b: i32, %m: memref<8xi32, #hivm.address_space<gm>>) {
  %s = arith.addi %a, %b : i32
  %t = arith.addi %a, %b : i32
  %p = arith.muli %s, %t : i32
  %dead = arith.subi %a, %b : i32
  %i = arith.index_cast %p : i32 to index
  memref.store %a, %m[%i] : memref<8xi32, #hivm.address_space<gm>>
  return
}
