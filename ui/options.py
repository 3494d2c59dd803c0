"""Streamlit options of the app: the same for every way of starting it.

``pararecover app`` passes them on the command line; ``.streamlit/config.toml`` repeats them for
``streamlit run app.py`` (a test compares the two).
"""

from pathlib import Path

Value = str | int | bool

_LIGHT: dict[str, Value] = {
    "primaryColor": "#0A5CA8",
    "backgroundColor": "#F4F6F8",
    "secondaryBackgroundColor": "#FFFFFF",
    "textColor": "#18202B",
    "linkColor": "#0A5CA8",
    "borderColor": "#D9DEE5",
}
_DARK: dict[str, Value] = {
    "primaryColor": "#7DB9F5",
    "backgroundColor": "#0F141B",
    "secondaryBackgroundColor": "#171E27",
    "textColor": "#E8ECF1",
    "linkColor": "#7DB9F5",
    "borderColor": "#2D3744",
}

OPTIONS: dict[str, Value] = {
    "server.headless": True,
    "server.address": "127.0.0.1",
    "server.enableStaticServing": True,
    "server.fileWatcherType": "none",
    "server.maxUploadSize": 1024,
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
    # A collection after every run costs 40 ms and more; the collector runs by itself anyway.
    "runner.postScriptGC": False,
    "theme.baseFontSize": 14,
    "theme.baseRadius": "6px",
    "theme.showWidgetBorder": True,
    **{f"theme.light.{name}": value for name, value in _LIGHT.items()},
    **{f"theme.dark.{name}": value for name, value in _DARK.items()},
    "theme.light.sidebar.backgroundColor": "#FFFFFF",
    "theme.light.sidebar.secondaryBackgroundColor": "#F4F6F8",
    "theme.dark.sidebar.backgroundColor": "#171E27",
    "theme.dark.sidebar.secondaryBackgroundColor": "#0F141B",
}
"""Option name, as ``streamlit config show`` lists it, to its value."""


def as_flags(options: dict[str, Value]) -> list[str]:
    """Options as command line flags of ``streamlit run``."""
    return [f"--{name}={_text(value)}" for name, value in options.items()]


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def package_root() -> Path:
    """The folder that holds ``ui``, ``pages`` and the rest: a checkout or site-packages."""
    return Path(__file__).resolve().parents[1]


def app_script() -> Path:
    """``app.py``: beside the packages in a checkout, inside the command's package in a wheel."""
    packed = package_root() / "pararecover_cli" / "app_script.py"
    return packed if packed.is_file() else package_root() / "app.py"
