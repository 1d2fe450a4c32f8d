"""What goes wrong in a run: one file for each kind of finding."""
