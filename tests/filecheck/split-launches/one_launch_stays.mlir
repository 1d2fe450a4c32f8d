// RUN: tilelang-npu opt %s -p split-launches | filecheck %s
// A kernel of one launch keeps its name, and everything else.
// CHECK:      func.func @k(%n: index)
// CHECK-NEXT:   tile.launch(%n)
// CHECK-NOT:  func.func
func.func @k(%n: index) {
  tile.launch(%n) sub_blocks 1 : i64 {
  ^bb0(%b: index):
  }
  return
}
