"""What a search can change in a kernel's source: each module finds one kind of subject, such as the loops, and can edit it."""
