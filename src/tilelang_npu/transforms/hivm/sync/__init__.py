"""The analysis behind ``insert-sync``: what touches which bytes, what that demands, what already orders it."""
