// RUN: tilelang-npu opt %s -p 'plan-memory{synchronise=true banks=false}' | filecheck %s
// The Vector pipe is the last to access each %x, and has waited for the loads: after the loop it may write there at once.
// The last store of the loop still reads %y, so %z has separate bytes.
// CHECK:     %x = hivm.hir.pointer_cast(%c0_i64, %c4096_i64)
// CHECK:     %y = hivm.hir.pointer_cast(%c8192_i64)
// CHECK:     %z = hivm.hir.pointer_cast(%c0_i64)
func.func @k(%A: memref<1024xf32, #hivm.address_space<gm>>, %B: memref<1024xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %cst = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c4 step %c1 {
    %x = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
    annotation.mark %x {hivm.multi_buffer = 2 : i32} : memref<1024xf32, #hivm.address_space<ub>>
    hivm.hir.load ins(%A : memref<1024xf32, #hivm.address_space<gm>>) outs(%x : memref<1024xf32, #hivm.address_space<ub>>)
    %y = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
    hivm.hir.vexp ins(%x : memref<1024xf32, #hivm.address_space<ub>>) outs(%y : memref<1024xf32, #hivm.address_space<ub>>)
    hivm.hir.store ins(%y : memref<1024xf32, #hivm.address_space<ub>>) outs(%A : memref<1024xf32, #hivm.address_space<gm>>)
  }
  %z = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
  hivm.hir.vbrc ins(%cst : f32) outs(%z : memref<1024xf32, #hivm.address_space<ub>>)
  hivm.hir.store ins(%z : memref<1024xf32, #hivm.address_space<ub>>) outs(%B : memref<1024xf32, #hivm.address_space<gm>>)
  return
}
