"""``python -m pararecover_cli``: the ``pararecover`` command."""

from pararecover_cli.main import main

main()
