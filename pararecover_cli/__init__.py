"""The ``pararecover`` command."""
