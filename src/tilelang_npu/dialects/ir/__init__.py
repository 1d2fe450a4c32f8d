"""What all dialects share: how ops and attributes are declared, what ops do to memory, and remarks of passes on ops."""
