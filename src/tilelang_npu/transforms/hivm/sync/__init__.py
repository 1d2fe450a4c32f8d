"""The solver of ``insert-sync`` and ``cross-sync``: it finds the accesses to order, and a small set of events and barriers."""
