"""Many training runs, and what is learned from them."""
