// A batch of products on tensors, one operand transposed, whose results leave as they are and, with Vector work behind them, again.
module {
  func.func @products(%a: memref<3x32x48xf16>, %b: memref<3x64x48xf16>, %c: memref<3x32x64xf32>, %d: memref<3x32x64xf32>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
    %zero = arith.constant 0.0 : f32
    %left = memref.alloc() : memref<3x32x48xf16>
    memref.copy %a, %left : memref<3x32x48xf16> to memref<3x32x48xf16>
    %x = bufferization.to_tensor %left restrict writable : memref<3x32x48xf16>
    %y = bufferization.to_tensor %b restrict writable : memref<3x64x48xf16>
    %e = tensor.empty() : tensor<3x32x64xf32>
    %none = linalg.fill ins(%zero : f32) outs(%e : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
    %r = linalg.batch_matmul_transpose_b ins(%x, %y : tensor<3x32x48xf16>, tensor<3x64x48xf16>) outs(%none : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
    %s = hfusion.elemwise_unary {fun = #hfusion.unary_fn<relu>} ins(%r : tensor<3x32x64xf32>) outs(%e : tensor<3x32x64xf32>) -> tensor<3x32x64xf32>
    bufferization.materialize_in_destination %r in writable %c : (tensor<3x32x64xf32>, memref<3x32x64xf32>) -> ()
    bufferization.materialize_in_destination %s in writable %d : (tensor<3x32x64xf32>, memref<3x32x64xf32>) -> ()
    return
  }
}
