// RUN: tilelang-npu opt %s -p merge-core-loops | filecheck %s
// Each loop has a bound of its own, computed by equal operations from the same operand: the loops become one.
// CHECK-LABEL: func.func @same
// CHECK:         scf.for
// CHECK:         tile.copy %p to %a
// CHECK:         tile.copy %h to %p
// CHECK-NOT:     scf.for
// CHECK-LABEL: 