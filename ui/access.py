"""Who may come in, and as what: pure rules, so that the command and the app share them.

Three ways to know who is there:

* local: the app listens on this machine alone; people say who they are (attribution, no security)
* header: an authenticating proxy in front names the person in a header
  (``PARARECOVER_TRUSTED_HEADER``); the proxy must strip the header from what clients send
* login: Streamlit's OpenID Connect login (``[auth]`` in secrets.toml)

With a login, roles come from the environment: ``PARARECOVER_ANNOTATORS``,
``PARARECOVER_ADJUDICATORS`` and ``PARARECOVER_ADMINS`` list people by e-mail or name, by
``@domain``, or ``*`` for everybody whom the login lets through.
"""

import hmac
import ipaddress
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from pararecover_core.errors import ConfigError

HEADER = "PARARECOVER_TRUSTED_HEADER"
PROXY_SECRET = "PARARECOVER_PROXY_SECRET"
PROXY_SECRET_HEADER = "X-Pararecover-Secret"
NAME_LIMIT = 60


class Role(StrEnum):
    """What a person may do; each role may do what the ones before it may."""

    ANNOTATOR = "annotator"
    ADJUDICATOR = "adjudicator"
    ADMIN = "admin"


ROLE_SETTINGS = {
    Role.ADMIN: "PARARECOVER_ADMINS",
    Role.ADJUDICATOR: "PARARECOVER_ADJUDICATORS",
    Role.ANNOTATOR: "PARARECOVER_ANNOTATORS",
}
"""Highest role first."""


class Mode(StrEnum):
    """How the app knows who is there."""

    LOCAL = "local"
    HEADER = "header"
    LOGIN = "login"


class User(msgspec.Struct, frozen=True):
    """A person at the app.

    Attributes:
        name: As it stands in scorer names (``human:NAME``).
        role: The highest role; local mode gives everybody all of them.
    """

    name: str
    role: Role

    def may(self, role: Role) -> bool:
        """Whether the person may do what ``role`` may."""
        order = list(Role)
        return order.index(self.role) >= order.index(role)


def mode(environ: Mapping[str, str], *, auth: bool) -> Mode:
    """How the app knows who is there.

    Args:
        environ: The process environment.
        auth: Whether Streamlit's own login is configured.
    """
    if auth:
        return Mode.LOGIN
    return Mode.HEADER if environ.get(HEADER, "").strip() else Mode.LOCAL


def is_loopback(address: str | None) -> bool:
    """Whether a server at this address is reached from this machine alone.

    Args:
        address: What ``server.address`` says; unset means every address of the machine.
    """
    if not address:
        return False
    host = address.strip().removeprefix("[").removesuffix("]")
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_local_host(header: str | None) -> bool:
    """Whether a ``Host`` header names this machine; none at all counts as local.

    A page elsewhere that resolves its own name to 127.0.0.1, or a proxy that forwards strangers
    to this machine, shows another name.
    """
    if not header:
        return True
    host = header.strip()
    host = (
        host[: host.index("]") + 1]
        if host.startswith("[") and "]" in host
        else (host.rsplit(":", 1)[0] if host.count(":") == 1 else host)
    )
    return is_loopback(host)


def check_binding(address: str | None, how: Mode) -> None:
    """Refuse to listen beyond this machine without a login.

    Raises:
        ConfigError: The address is not loopback and nobody would have to log in.
    """
    if how is Mode.LOCAL and not is_loopback(address):
        raise ConfigError(
            "server.address",
            repr(address) if address else "no address, which is every address of the machine",
            "127.0.0.1, or a login",
            "Leave --host away, or configure a login first: README, section Team",
        )


def clean_name(text: object) -> str:
    """A name as people typed it, without what would be lost or mislead; "" where none is left."""
    given = text if isinstance(text, str) else ""
    kept = "".join(c for c in " ".join(given.split()) if c.isprintable())
    return kept[:NAME_LIMIT].strip()


def role_of(names: list[str], environ: Mapping[str, str]) -> Role | None:
    """The highest role of a person, None where the configuration gives none.

    Args:
        names: The names that the login vouches for (e-mail first).
        environ: The process environment.
    """
    mine = {name.casefold() for name in names if name}
    domains = {f"@{name.rsplit('@', 1)[1]}" for name in mine if "@" in name}
    for role, setting in ROLE_SETTINGS.items():
        listed = {part.strip().casefold() for part in environ.get(setting, "").split(",")}
        if mine and listed & (mine | domains | {"*"}):
            return role
    return None


def header_name(headers: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """The name that the trusted proxy sent, "" where it sent none.

    Where ``PARARECOVER_PROXY_SECRET`` is set, a request without it comes from no trusted proxy.
    """
    secret = environ.get(PROXY_SECRET, "")
    given = headers.get(PROXY_SECRET_HEADER) or ""
    if secret and not hmac.compare_digest(secret.encode(), given.encode()):
        return ""
    return clean_name(headers.get(environ.get(HEADER, "").strip()) or "")
