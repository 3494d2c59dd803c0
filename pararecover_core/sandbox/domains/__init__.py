"""One module a domain; every function with ``@tool`` is a tool."""
