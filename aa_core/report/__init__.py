"""Results for people (terminal, page) and for programs (JSON)."""
