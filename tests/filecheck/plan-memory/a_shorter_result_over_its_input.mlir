// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} | filecheck %s
// A line of shorter elements is never ahead of those that it is converted from: where there is no room for both, it begins where
// its input does, and takes the first half of its bytes.
// CHECK:      %x = hivm.hir.pointer_cast(%c0_i64)
// CHECK:      %y = hivm.hir.pointer_cast(%c0_i64)
// CHECK-NEXT: hivm.hir.vcast ins(%x {{.*}} outs(%y
// What begins later, beside the result, may have the rest.
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
