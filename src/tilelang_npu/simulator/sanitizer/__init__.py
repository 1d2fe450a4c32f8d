"""The sanitizer: it searches the record of a launch for races, wrong use of flags, uninitialised reads, misaligned addresses,
harmful padding and numerical faults. There is one module for each kind of fault."""
