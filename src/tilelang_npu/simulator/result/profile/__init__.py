"""The profile of a launch: the critical path, the pipes, the bytes, and the gain of possible changes."""
