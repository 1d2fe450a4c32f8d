// Vector work as another tool hands it over: memories are named; addresses, waits and the core type are left to the compiler.
module {
  func.func @scaled_sum(%a: memref<48x40xf32, #hivm.address_space<gm>>, %b: memref<48x40xf32, #hivm.address_space<gm>>, %c: memref<48x40xf32, #hivm.address_space<gm>>, %by: f32) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c48 = arith.constant 48 : index
    scf.for %row = %c0 to %c48 step %c16 {
      %x = memref.alloc() : memref<16x40xf32, #hivm.address_space<ub>>
      annotation.mark %x {hivm.multi_buffer = 2 : i32} : memref<16x40xf32, #hivm.address_space<ub>>
      %y = memref.alloc() : memref<16x40xf32, #hivm.address_space<ub>>
      %z = memref.alloc() : memref<16x40xf32, #hivm.address_space<ub>>
      %ga = memref.subview %a[%row, 0] [16, 40] [1, 1] : memref<48x40xf32, #hivm.address_space<gm>> to memref<16x40xf32, strided<[40, 1], offset: ?>, #hivm.address_space<gm>>
      %gb = memref.subview %b[%row, 0] [16, 40] [1, 1] : memref<48x40xf32, #hivm.address_space<gm>> to memref<16x40xf32, strided<[40, 1], offset: ?>, #hivm.address_space<gm>>
      %gc = memref.subview %c[%row, 0] [16, 40] [1, 1] : memref<48x40xf32, #hivm.address_space<gm>> to memref<16x40xf32, strided<[40, 1], offset: ?>, #hivm.address_space<gm>>
      hivm.hir.load ins(%ga : memref<16x40xf32, strided<[40, 1], offset: ?>, #hivm.address_space<gm>>) outs(%x : memref<16x40xf32, #hivm.address_space<ub>>)
      hivm.hir.load ins(%gb : memref<16x40xf32, strided<[40, 1], offset: ?>, #hivm.address_space<gm>>) outs(%y : memref<16x40xf32, #hivm.address_space<ub>>)
      hivm.hir.vmul ins(%x, %by : memref<16x40xf32, #hivm.address_space<ub>>, f32) outs(%z : memref<16x40xf32, #hivm.address_space<ub>>)
      hivm.hir.vadd ins(%z, %y : memref<16x40xf32, #hivm.address_space<ub>>, memref<16x40xf32, #hivm.address_space<ub>>) outs(%z : memref<16x40xf32, #hivm.address_space<ub>>)
      hivm.hir.store ins(%z : memref<16x40xf32, #hivm.address_space<ub>>) outs(%gc : memref<16x40xf32, strided<[40, 1], offset: ?>, #hivm.address_space<gm>>)
    }
    return
  }
}
