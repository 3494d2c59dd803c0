"""What a server imports, imported once for all servers of the tests.

Nothing that registers itself with a running app may stand here: no ``pages`` and no ``ui``.
"""

import gc
import pkgutil
from importlib import import_module

import annotations
import pararecover_core

import_module("streamlit.web.bootstrap")
import_module("altair")
for _package in (annotations, pararecover_core):
    for _found in pkgutil.walk_packages(_package.__path__, f"{_package.__name__}."):
        import_module(_found.name)
gc.collect()
gc.freeze()  # what is shared is left alone by every server's collector
