// A product on tensors, one operand transposed, whose result leaves as it is and, with Vector work behind it, again.
module {
  func.func @product(%a: memref<32x48xf16>, %b: memref<64x48xf16>, %c: memref<32x64xf32>, %d: memref<32x64xf32>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
    %zero = arith.constant 0.0 : f32
    %left = memref.alloc() : memref<32x48xf16>
    memref.copy %a, %left : memref<32x48xf16> to memref<32x48xf16>
    %x = bufferization.to_tensor %left restrict writable : memref<32x48xf16>
    %y = bufferization.to_tensor %b restrict writable : memref<64x48xf16>
    %e = tensor.empty() : tensor<32x64xf32>
    %none = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
    %r = linalg.matmul_transpose_b ins(%x, %y : tensor<32x48xf16>, tensor<64x48xf16>) outs(%none : tensor<32x64xf32>) -> tensor<32x64xf32>
    %s = hfusion.elemwise_unary {fun = #hfusion.unary_fn<relu>} ins(%r : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
    bufferization.materialize_in_destination %r in writable %c : (tensor<32x64xf32>, memref<32x64xf32>) -> ()
    bufferization.materialize_in_destination %s in writable %d : (tensor<32x64xf32>, memref<32x64xf32>) -> ()
    return
  }
}
