// RUN: tilelang-npu opt %s -p split-launches | filecheck %s
// A kernel with one launch is unchanged and keeps its name.
// CHECK:      func.func @k(%n: index)
// CHECK-NEXT:   tile.launch(%n)
// CHECK-NOT:  func.func
func.func @k(%n: index) {
  tile.launch(%n) sub_blocks 1 : i64 {
  ^bb0(%b: index):
  }
  return
}
