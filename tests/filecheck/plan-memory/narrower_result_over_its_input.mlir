// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} | filecheck %s
// A conversion to narrower elements never writes ahead of its reads: if there is no room for both, the result starts at the
// first byte of its input and takes half of the bytes.
// CHECK:      %x = hivm.hir.pointer_cast(%c0_i64)
// CHECK:      %y = hivm.hir.pointer_cast(%c0_i64)
// CHECK-NEXT: hivm.hir.vcast ins(%x {{.*}} outs(%y
// A buffer with a later live range may use the other half.
// CHECK:      %z = hivm.hir.pointer_cast(%c80000_i64)
func.func @k(%a: memref<40000xf32, #hivm.address_space<gm>>, %b: memref<40000xf16, #hivm.address_space<gm>>, %c: memref<50000xf16, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
  %x = memref.alloc() : memref<40000xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%a : memref<40000xf32, #hivm.address_space<gm>>) outs(%x : memref<40000xf32, #hivm.address_space<ub>>)
  %y = memref.alloc() : memref<40000xf16, #hivm.address_space<ub>>
  hivm.hir.vcast ins(%x : memref<40000xf32, #hivm.address_space<ub>>) outs(%y : memref<40000xf16, #hivm.address_space<ub>>) round_mode = #hivm.round_mode<rint>
  %z = memref.alloc() : memref<50000xf16, #hivm.address_space<ub>>
  hivm.hir.load ins(%c : memref<50000xf16, #hivm.address_space<gm>>) outs(%z : memref<50000xf16, #hivm.address_space<ub>>)
  hivm.hir.store ins(%z : memref<50000xf16, #hivm.address_space<ub>>) outs(%c : memref<50000xf16, #hivm.address_space<gm>>)
  hivm.hir.store ins(%y : memref<40000xf16, #hivm.address_space<ub>>) outs(%b : memref<40000xf16, #hivm.address_space<gm>>)
  return
}
