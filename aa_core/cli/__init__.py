"""The command line `aa`."""
