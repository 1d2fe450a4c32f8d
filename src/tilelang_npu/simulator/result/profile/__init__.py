"""The profile of a launch: its time along the critical path, by pipe and by source line, its moved bytes, and the gain of
possible changes."""
