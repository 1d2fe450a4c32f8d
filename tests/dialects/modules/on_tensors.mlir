// The form before buffers are placed: values, destination tensors, a workspace and a lock.
module attributes {hivm.module_core_type = #hivm.module_core_type<AIV>} {
  func.func @soft(%x: memref<16x128xf16>, %y: memref<16x128xf16>, %locks: memref<?xi8>, %ws: memref<?xi8>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
    %zero = arith.constant 0.000000e+00 : f32
    %scratch = memref_ext.alloc_workspace() from %ws : from memref<?xi8> to memref<16x128xf32>
    %lock = hivm.hir.create_sync_block_lock from %locks : from memref<?xi8> to memref<1xi64>
    %in = bufferization.to_tensor %x restrict writable : memref<16x128xf16>
    %0 = tensor.empty() : tensor<16x128xf16>
    %1 = hivm.hir.load ins(%in : tensor<16x128xf16>) outs(%0 : tensor<16x128xf16>) eviction_policy = <EvictFirst> -> tensor<16x128xf16>
    %2 = tensor.empty() : tensor<16x128xf32>
    %3 = hivm.hir.vcast ins(%1 : tensor<16x128xf16>) outs(%2 : tensor<16x128xf32>) -> tensor<16x128xf32>
    %4 = tensor.empty() : tensor<16x1xf32>
    %5 = hivm.hir.vreduce <max> ins(%3 : tensor<16x128xf32>) outs(%4 : tensor<16x1xf32>) unsigned_src = false tie_break_left = true reduce_dims = [1] -> tensor<16x1xf32>
    %6 = hivm.hir.vsub ins(%3, %5 : tensor<16x128xf32>, tensor<16x1xf32>) outs(%2 : tensor<16x128xf32>) broadcast = [1] -> tensor<16x128xf32>
    %7 = hivm.hir.vexp ins(%6 : tensor<16x128xf32>) outs(%2 : tensor<16x128xf32>) -> tensor<16x128xf32>
    %8 = tensor.empty() : tensor<16x128xi1>
    %9 = hivm.hir.vcmp ins(%7, %zero : tensor<16x128xf32>, f32) outs(%8 : tensor<16x128xi1>) compare_mode = <gt> -> tensor<16x128xi1>
    %10 = hivm.hir.vsel ins(%9, %7, %3 : tensor<16x128xi1>, tensor<16x128xf32>, tensor<16x128xf32>) outs(%2 : tensor<16x128xf32>) -> tensor<16x128xf32>
    %11 = hivm.hir.vcast ins(%10 : tensor<16x128xf32>) outs(%0 : tensor<16x128xf16>) round_mode = <rint> -> tensor<16x128xf16>
    hivm.hir.sync_block_lock lock_var(%lock : memref<1xi64>)
    %12 = bufferization.to_tensor %y restrict writable : memref<16x128xf16>
    %13 = hivm.hir.store ins(%11 : tensor<16x128xf16>) outs(%12 : tensor<16x128xf16>) atomic = <add> -> tensor<16x128xf16>
    hivm.hir.sync_block_unlock lock_var(%lock : memref<1xi64>)
    bufferization.materialize_in_destination %13 in writable %y : (tensor<16x128xf16>, memref<16x128xf16>) -> ()
    %14 = scope.scope : () -> (tensor<16x1xf32>) {
      scope.return %5 : tensor<16x1xf32>
    } {hivm.loop_core_type = #hivm.tcore_type<VECTOR>}
    annotation.mark %14 keys = ["slots"] values = [%zero : f32] : tensor<16x1xf32>
    hivm.hir.debug {debugtype = "print", hex = false, prefix = "row: "} %14 : tensor<16x1xf32>
    return
  }
}
