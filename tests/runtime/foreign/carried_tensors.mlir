// Tensors carried by a loop, two of which change places, and one that a branch hands out; all of it on ops of HIVM.
module {
  func.func @carried(%x: memref<64xf32, #hivm.address_space<gm>>, %y: memref<64xf32, #hivm.address_space<gm>>, %n: i32) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c5 = arith.constant 5 : i32
    %two = arith.constant 2.0 : f32
    %in = bufferization.to_tensor %x restrict writable : memref<64xf32, #hivm.address_space<gm>>
    %e = tensor.empty() : tensor<64xf32>
    %a = hivm.hir.load ins(%in : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    %b = hivm.hir.vmul ins(%a, %two : tensor<64xf32>, f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    %p, %q, %count = scf.for %i = %c0 to %n step %c1 iter_args(%u = %a, %v = %b, %k = %c0) -> (tensor<64xf32>, tensor<64xf32>, i32) : i32 {
      %w = hivm.hir.vadd ins(%u, %v : tensor<64xf32>, tensor<64xf32>) outs(%u : tensor<64xf32>) -> tensor<64xf32>
      %next = arith.addi %k, %c1 : i32
      scf.yield %v, %w, %next : tensor<64xf32>, tensor<64xf32>, i32
    }
    %many = arith.cmpi sge, %count, %c5 : i32
    %r = scf.if %many -> (tensor<64xf32>) {
      %s = hivm.hir.vsub ins(%q, %p : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
      scf.yield %s : tensor<64xf32>
    } else {
      scf.yield %q : tensor<64xf32>
    }
    %part = tensor.extract_slice %r[8] [16] [1] : tensor<64xf32> to tensor<16xf32>
    %half = tensor.empty() : tensor<16xf32>
    %twice = hivm.hir.vadd ins(%part, %part : tensor<16xf32>, tensor<16xf32>) outs(%half : tensor<16xf32>) -> tensor<16xf32>
    %whole = tensor.insert_slice %twice into %r[32] [16] [1] : tensor<16xf32> into tensor<64xf32>
    hivm.hir.store ins(%whole : tensor<64xf32>) outs(%y : memref<64xf32, #hivm.address_space<gm>>)
    return
  }
}
