// RUN: tilelang-npu opt %s -p 'plan-memory{synchronise=true banks=false}' | filecheck %s
// Buffers that only the Vector pipe accesses share bytes, also in a loop: the pipe has read before it writes. Bytes that it
// wrote last as scratch are not reused by its next write, which no barrier precedes: %t does not share with %s, and around
// the loop %u not with %p.
// CHECK:     %x = hivm.hir.pointer_cast(%c0_i64)
// CHECK:     %y = hivm.hir.pointer_cast(%c4096_i64)
// CHECK:     %p = hivm.hir.pointer_cast(%c8192_i64)
// CHECK:     %q = hivm.hir.pointer_cast(%c8192_i64)
// CHECK:     %s = hivm.hir.pointer_cast(%c12288_i64)
// CHECK:     %r = hivm.hir.pointer_cast(%c16384_i64)
// CHECK:     %t = hivm.hir.pointer_cast(%c20480_i64)
// CHECK:     %u = hivm.hir.pointer_cast(%c12288_i64)
func.func @k(%A: memref<1024xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %x = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
    %y = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
    hivm.hir.load ins(%A : memref<1024xf32, #hivm.address_space<gm>>) outs(%x : memref<1024xf32, #hivm.address_space<ub>>)
    %p = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
    hivm.hir.vexp ins(%x : memref<1024xf32, #hivm.address_space<ub>>) outs(%p : memref<1024xf32, #hivm.address_space<ub>>)
    %q = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
    %s = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
    hivm.hir.vexp ins(%p : memref<1024xf32, #hivm.address_space<ub>>) outs(%q : memref<1024xf32, #hivm.address_space<ub>>) temp_buffer(%s : memref<1024xf32, #hivm.address_space<ub>>)
    %r = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
    %t = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
    hivm.hir.vexp ins(%x : memref<1024xf32, #hivm.address_space<ub>>) outs(%r : memref<1024xf32, #hivm.address_space<ub>>) temp_buffer(%t : memref<1024xf32, #hivm.address_space<ub>>)
    hivm.hir.vabs ins(%q : memref<1024xf32, #hivm.address_space<ub>>) outs(%y : memref<1024xf32, #hivm.address_space<ub>>)
    hivm.hir.vadd ins(%r, %y : memref<1024xf32, #hivm.address_space<ub>>, memref<1024xf32, #hivm.address_space<ub>>) outs(%y : memref<1024xf32, #hivm.address_space<ub>>)
    %u = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
    hivm.hir.vexp ins(%y : memref<1024xf32, #hivm.address_space<ub>>) outs(%y : memref<1024xf32, #hivm.address_space<ub>>) temp_buffer(%u : memref<1024xf32, #hivm.address_space<ub>>)
    hivm.hir.store ins(%y : memref<1024xf32, #hivm.address_space<ub>>) outs(%A : memref<1024xf32, #hivm.address_space<gm>>)
  }
  return
}
