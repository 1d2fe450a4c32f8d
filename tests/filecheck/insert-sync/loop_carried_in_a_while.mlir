// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The next iteration overwrites a buffer that this one still reads: an event orders the iterations of a `while` as of a
// `for`.
// CHECK:      hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK:      scf.while
// CHECK:      do {
// CHECK-NEXT:   hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT:   hivm.hir.load
// CHECK:        hivm.hir.vexp
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK:      hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK:      return
func.func @k(%X: memref<16xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %a0 = arith.constant 0 : i64
  %a1 = arith.constant 64 : i64
  %c0 = arith.constant 0 : index
  %go = memref.alloca() : memref<1xi1>
  %x = hivm.hir.pointer_cast(%a0) : memref<16xf32, #hivm.address_space<ub>>
  %y = hivm.hir.pointer_cast(%a1) : memref<16xf32, #hivm.address_space<ub>>
  scf.while () : () -> () {
    %more = memref.load %go[%c0] : memref<1xi1>
    scf.condition(%more)
  } do {
    hivm.hir.load ins(%X : memref<16xf32, #hivm.address_space<gm>>) outs(%x : memref<16xf32, #hivm.address_space<ub>>)
    hivm.hir.vexp ins(%x : memref<16xf32, #hivm.address_space<ub>>) outs(%y : memref<16xf32, #hivm.address_space<ub>>)
    scf.yield
  }
  return
}
