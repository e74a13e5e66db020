"""The assign-and-add task: its sizes, what training may see, draws of sequences, and problems as text."""
