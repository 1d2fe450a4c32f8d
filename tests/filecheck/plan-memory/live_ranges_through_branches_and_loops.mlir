// RUN: tilelang-npu opt %s -p 'plan-memory{synchronise=true banks=false}' | filecheck %s
// The live ranges of %a and %b end at the last use of the result of a branch or a loop: %c, in between, has separate bytes.
// CHECK:     %a = hivm.hir.pointer_cast(%c0_i64)
// CHECK:     %b = hivm.hir.pointer_cast(%c4096_i64)
// CHECK:     %c = hivm.hir.pointer_cast(%c8192_i64)
// CHECK:     %d = hivm.hir.pointer_cast(%c12288_i64)
func.func @k(%which: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  %a = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
  %b = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
  hivm.hir.vbrc ins(%one : f32) outs(%a : memref<1024xf32, #hivm.address_space<ub>>)
  hivm.hir.vbrc ins(%one : f32) outs(%b : memref<1024xf32, #hivm.address_space<ub>>)
  %chosen = arith.select %which, %a, %b : memref<1024xf32, #hivm.address_space<ub>>
  %branch = scf.if %which -> (memref<1024xf32, #hivm.address_space<ub>>) {
    scf.yield %chosen : memref<1024xf32, #hivm.address_space<ub>>
  } else {
    scf.yield %b : memref<1024xf32, #hivm.address_space<ub>>
  }
  %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%before = %branch) -> (memref<1024xf32, #hivm.address_space<ub>>) {
    scf.yield %before : memref<1024xf32, #hivm.address_space<ub>>
  }
  %c = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
  %d = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
  hivm.hir.vbrc ins(%one : f32) outs(%c : memref<1024xf32, #hivm.address_space<ub>>)
  hivm.hir.vadd ins(%c, %last : memref<1024xf32, #hivm.address_space<ub>>, memref<1024xf32, #hivm.address_space<ub>>) outs(%d : memref<1024xf32, #hivm.address_space<ub>>)
  hivm.hir.vadd ins(%c, %a : memref<1024xf32, #hivm.address_space<ub>>, memref<1024xf32, #hivm.address_space<ub>>) outs(%d : memref<1024xf32, #hivm.address_space<ub>>)
  return
}
