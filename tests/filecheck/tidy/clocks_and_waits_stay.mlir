// RUN: tilelang-npu opt %s -p tidy | filecheck %s
// Two reads of the clock stay separate, and a loop that waits for memory has an effect although it only reads.
// CHECK:      func.func @k
// CHECK:        %[[A:.*]] = hivm.hir.get_sys_cnt
// CHECK-NEXT:   %[[B:.*]] = hivm.hir.get_sys_cnt
// CHECK:        scf.while
// CHECK:          memref.load
// CHECK:        %[[D:.*]] = arith.subi %[[B]], %[[A]]
// CHECK-NEXT:   memref.store %[[D]]
func.func @k(%flag: memref<1xi32, #hivm.address_space<gm>>, %m: memref<1xi64, #hivm.address_space<gm>>) {
  %a = hivm.hir.get_sys_cnt -> i64
  %b = hivm.hir.get_sys_cnt -> i64
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %end = scf.while (%i = %c0) : (index) -> index {
    %seen = memref.load %flag[%c0] : memref<1xi32, #hivm.address_space<gm>>
    %go = arith.cmpi eq, %seen, %zero : i32
    scf.condition(%go) %i : index
  } do {
  ^bb0(%j: index):
    scf.yield %j : index
  }
  %d = arith.subi %b, %a : i64
  memref.store %d, %m[%c0] : memref<1xi64, #hivm.address_space<gm>>
  return
}
