// RUN: tilelang-npu opt %s -p plan-memory{synchronise=true} | filecheck %s
// Outside of loops a result may overwrite its last input without longer waits, also with a change of type. In a loop the
// next load would wait for the store.
// CHECK:     %a = hivm.hir.pointer_cast(%c0_i64)
// CHECK:     %b = hivm.hir.pointer_cast(%c0_i64)
// CHECK:     %c = hivm.hir.pointer_cast(%c0_i64)
// CHECK:     %x = hivm.hir.pointer_cast(%c4096_i64)
// CHECK:     %y = hivm.hir.pointer_cast(%c8192_i64)
func.func @k(%A: memref<1024xf32, #hivm.address_space<gm>>, %B: memref<1024xi32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
  %b = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
  %c = memref.alloc() : memref<1024xi32, #hivm.address_space<ub>>
  hivm.hir.load ins(%A : memref<1024xf32, #hivm.address_space<gm>>) outs(%a : memref<1024xf32, #hivm.address_space<ub>>)
  hivm.hir.vexp ins(%a : memref<1024xf32, #hivm.address_space<ub>>) outs(%b : memref<1024xf32, #hivm.address_space<ub>>)
  hivm.hir.vcast ins(%b : memref<1024xf32, #hivm.address_space<ub>>) outs(%c : memref<1024xi32, #hivm.address_space<ub>>) round_mode = #hivm.round_mode<trunc>
  hivm.hir.store ins(%c : memref<1024xi32, #hivm.address_space<ub>>) outs(%B : memref<1024xi32, #hivm.address_space<gm>>)
  scf.for %i = %c0 to %c4 step %c1 {
    %x = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
    %y = memref.alloc() : memref<1024xf32, #hivm.address_space<ub>>
    hivm.hir.load ins(%A : memref<1024xf32, #hivm.address_space<gm>>) outs(%x : memref<1024xf32, #hivm.address_space<ub>>)
    hivm.hir.vexp ins(%x : memref<1024xf32, #hivm.address_space<ub>>) outs(%y : memref<1024xf32, #hivm.address_space<ub>>)
    hivm.hir.store ins(%y : memref<1024xf32, #hivm.address_space<ub>>) outs(%A : memref<1024xf32, #hivm.address_space<gm>>)
  }
  return
}
