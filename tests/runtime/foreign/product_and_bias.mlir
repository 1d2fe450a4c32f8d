// Both cores in one function, not split: a product leaves through a workspace, Vector work adds to it. Two blocks.
module attributes {hacc.target = #hacc.target<"Ascend910B3">} {
  func.func @product_and_bias(%a: memref<64x32xf16, #hivm.address_space<gm>>, %b: memref<32x48xf16, #hivm.address_space<gm>>, %d: memref<64x48xf32, #hivm.address_space<gm>>, %o: memref<64x48xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
    %true = arith.constant true
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    %id = hivm.hir.get_block_idx -> i64
    %block = arith.index_cast %id : i64 to index
    %row = arith.muli %block, %c32 : index
    %l1a = memref.alloc() : memref<2x2x16x16xf16, #hivm.address_space<cbuf>>
    %l1b = memref.alloc() : memref<3x2x16x16xf16, #hivm.address_space<cbuf>>
    %acc = memref.alloc() : memref<3x2x16x16xf32, #hivm.address_space<cc>>
    %ws = memref_ext.alloc_workspace() : memref<32x48xf32, #hivm.address_space<gm>>
    %x = memref.alloc() : memref<32x48xf32, #hivm.address_space<ub>>
    %y = memref.alloc() : memref<32x48xf32, #hivm.address_space<ub>>
    %ga = memref.subview %a[%row, 0] [32, 32] [1, 1] : memref<64x32xf16, #hivm.address_space<gm>> to memref<32x32xf16, strided<[32, 1], offset: ?>, #hivm.address_space<gm>>
    %gd = memref.subview %d[%row, 0] [32, 48] [1, 1] : memref<64x48xf32, #hivm.address_space<gm>> to memref<32x48xf32, strided<[48, 1], offset: ?>, #hivm.address_space<gm>>
    %go = memref.subview %o[%row, 0] [32, 48] [1, 1] : memref<64x48xf32, #hivm.address_space<gm>> to memref<32x48xf32, strided<[48, 1], offset: ?>, #hivm.address_space<gm>>
    hivm.hir.nd2nz {dst_continuous} ins(%ga : memref<32x32xf16, strided<[32, 1], offset: ?>, #hivm.address_space<gm>>) outs(%l1a : memref<2x2x16x16xf16, #hivm.address_space<cbuf>>)
    hivm.hir.nd2nz {dst_continuous} ins(%b : memref<32x48xf16, #hivm.address_space<gm>>) outs(%l1b : memref<3x2x16x16xf16, #hivm.address_space<cbuf>>)
    hivm.hir.mmadL1 ins(%l1a, %l1b, %true, %c32, %c32, %c48 : memref<2x2x16x16xf16, #hivm.address_space<cbuf>>, memref<3x2x16x16xf16, #hivm.address_space<cbuf>>, i1, index, index, index) outs(%acc : memref<3x2x16x16xf32, #hivm.address_space<cc>>)
    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%acc : memref<3x2x16x16xf32, #hivm.address_space<cc>>) outs(%ws : memref<32x48xf32, #hivm.address_space<gm>>)
    hivm.hir.load ins(%gd : memref<32x48xf32, strided<[48, 1], offset: ?>, #hivm.address_space<gm>>) outs(%y : memref<32x48xf32, #hivm.address_space<ub>>)
    hivm.hir.load ins(%ws : memref<32x48xf32, #hivm.address_space<gm>>) outs(%x : memref<32x48xf32, #hivm.address_space<ub>>)
    hivm.hir.vadd ins(%x, %y : memref<32x48xf32, #hivm.address_space<ub>>, memref<32x48xf32, #hivm.address_space<ub>>) outs(%x : memref<32x48xf32, #hivm.address_space<ub>>)
    hivm.hir.store ins(%x : memref<32x48xf32, #hivm.address_space<ub>>) outs(%go : memref<32x48xf32, strided<[48, 1], offset: ?>, #hivm.address_space<gm>>)
    return
  }
}
