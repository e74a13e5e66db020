"""The one error that bad input raises."""

from __future__ import annotations


class InputError(ValueError):
    """Input that cannot be used; the message is one line that says what was expected and what to do.

    The command line prints it and exits with 2.
    """
