"""Reports on a kernel (compiler decisions, memory, waits, times, proposed edits), and files for other programs."""
