"""Who may come in, and as what."""

import pytest

from pararecover_core.errors import ConfigError
from ui.access import (
    Mode,
    Role,
    User,
    check_binding,
    clean_name,
    header_name,
    is_local_host,
    is_loopback,
    mode,
    role_of,
)


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("::ffff:10.0.0.1", False),
        ("example.org", False),
        ("127.0.0.1.example.org", False),
        ("", False),  # unset: every address of the machine
        (None, False),
    ],
)
def test_what_counts_as_this_machine(address, loopback):
    assert is_loopback(address) is loopback


@pytest.mark.parametrize(
    ("header", "local"),
    [
        ("localhost:8501", True),
        ("127.0.0.1:8501", True),
        ("[::1]:8501", True),
        ("localhost", True),
        (None, True),
        ("rebound.example.org:8501", False),
        ("192.168.1.5:8501", False),
        ("localhost.example.org", False),
        ("[2001:db8::1]:8501", False),
    ],
)
def test_host_headers_of_this_machine(header, local):
    assert is_local_host(header) is local


def test_a_login_comes_before_a_header_before_local():
    header = {"PARARECOVER_TRUSTED_HEADER": "X-User"}
    assert mode({}, auth=False) is Mode.LOCAL
    assert mode({"PARARECOVER_TRUSTED_HEADER": "  "}, auth=False) is Mode.LOCAL
    assert mode(header, auth=False) is Mode.HEADER
    assert mode(header, auth=True) is Mode.LOGIN


@pytest.mark.parametrize("address", ["0.0.0.0", None, "10.0.0.7"])
def test_beyond_this_machine_needs_a_login(address):
    with pytest.raises(ConfigError, match=r"server\.address: got .* expected 127\.0\.0\.1"):
        check_binding(address, Mode.LOCAL)
    check_binding(address, Mode.HEADER)
    check_binding(address, Mode.LOGIN)


def test_names_lose_what_would_mislead():
    assert clean_name("  Ada \n Lovelace ") == "Ada Lovelace"
    assert clean_name("Ada\u202egnirts\x00") == "Adagnirts"  # no direction marks, no controls
    assert clean_name("x" * 100) == "x" * 60
    assert clean_name(" \u200b ") == ""
    assert clean_name(None) == ""


ROLES = {
    "PARARECOVER_ADMINS": "root@lab.org",
    "PARARECOVER_ADJUDICATORS": "Ada@lab.org, eve@other.org",
    "PARARECOVER_ANNOTATORS": "@lab.org",
}


@pytest.mark.parametrize(
    ("names", "role"),
    [
        (["root@lab.org"], Role.ADMIN),
        (["ada@LAB.org"], Role.ADJUDICATOR),
        (["bob@lab.org"], Role.ANNOTATOR),
        (["bob@lab.org.evil.org"], None),
        (["stranger@other.org"], None),
        (["", "eve@other.org"], Role.ADJUDICATOR),
        ([], None),
        ([""], None),
    ],
)
def test_roles_come_from_the_configuration(names, role):
    assert role_of(names, ROLES) is role


def test_no_configuration_lets_nobody_in_and_a_star_everybody():
    assert role_of(["ada"], {}) is None
    assert role_of(["ada"], {"PARARECOVER_ANNOTATORS": "*"}) is Role.ANNOTATOR
    assert role_of([], {"PARARECOVER_ANNOTATORS": "*"}) is None


def test_higher_roles_may_do_what_lower_ones_may():
    assert [User("a", Role.ADJUDICATOR).may(role) for role in Role] == [True, True, False]


def test_the_proxy_s_secret_is_asked_for_where_it_is_set():
    environ = {"PARARECOVER_TRUSTED_HEADER": "X-User"}
    assert header_name({"X-User": " ada "}, environ) == "ada"
    assert header_name({"X-Other": "ada"}, environ) == ""
    environ["PARARECOVER_PROXY_SECRET"] = "s3cret"
    assert header_name({"X-User": "ada"}, environ) == ""
    assert header_name({"X-User": "ada", "X-Pararecover-Secret": "guess"}, environ) == ""
    assert header_name({"X-User": "ada", "X-Pararecover-Secret": "s3cret"}, environ) == "ada"
