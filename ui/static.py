"""Files that the browser fetches from the app itself: no request leaves the machine."""

import shutil
from importlib.util import find_spec
from pathlib import Path

from pararecover_core.errors import ConfigError

VIS_NETWORK = "vis-network.min.js"
"""Served as ``/app/static/vis-network.min.js``."""


def vis_network() -> Path:
    """The script that the installed pyvis package carries.

    Raises:
        ConfigError: pyvis is not installed, or holds no such script.
    """
    spec = find_spec("pyvis")  # found, not imported: its import costs a quarter of a second
    if spec is not None and spec.origin is not None:
        lib = Path(spec.origin).parent / "lib"
        versions = sorted(lib.glob(f"vis-*/{VIS_NETWORK}"), key=_version)
        if versions:
            return versions[-1]
    raise ConfigError("pyvis", "no vis-network script", "pyvis 0.3.2 or newer", "Install it again")


def _version(path: Path) -> tuple[int, ...]:
    digits = path.parent.name.removeprefix("vis-").split(".")
    return tuple(int(part) for part in digits if part.isdigit())


def ensure_static(folder: Path) -> Path:
    """Copy what the browser needs into ``folder/static``.

    Args:
        folder: The folder of the script that Streamlit runs.

    Returns:
        The static folder.
    """
    source, static = vis_network(), folder / "static"
    target = static / VIS_NETWORK
    if not target.is_file() or target.stat().st_size != source.stat().st_size:
        static.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(".part")
        shutil.copyfile(source, part)
        part.replace(target)
    return static
