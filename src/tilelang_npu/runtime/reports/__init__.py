"""Reports on a kernel: decisions of the compiler, memory, waits, times, edits; and the files that other programs read."""
