// Memory is left to the compiler, the waits are the author's; the last one is missing.
module {
  func.func @own_waits(%a: memref<256xf32, #hivm.address_space<gm>>, %b: memref<256xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
    %x = memref.alloc() : memref<256xf32, #hivm.address_space<ub>>
    hivm.hir.load ins(%a : memref<256xf32, #hivm.address_space<gm>>) outs(%x : memref<256xf32, #hivm.address_space<ub>>)
    hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]
    hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]
    hivm.hir.vrelu ins(%x : memref<256xf32, #hivm.address_space<ub>>) outs(%x : memref<256xf32, #hivm.address_space<ub>>)
    hivm.hir.store ins(%x : memref<256xf32, #hivm.address_space<ub>>) outs(%b : memref<256xf32, #hivm.address_space<gm>>)
    return
  }
}
