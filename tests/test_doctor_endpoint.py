"""What ``doctor`` says of the endpoint: it asks nobody unless it is told to."""

import json

import pytest
from typer.testing import CliRunner

from pararecover_cli.main import cli
from tests.model_server import chat, failure, in_turn, serving


def endpoint(*flags):
    found = CliRunner().invoke(cli, ["doctor", "--json", *flags])
    findings = json.loads(found.stdout)["findings"]
    return next(one for one in findings if one["what"].startswith("endpoint"))


def test_without_an_endpoint_it_says_how_to_have_one():
    found = endpoint("--ping")
    assert found["state"] == "note"
    assert "set OPENAI_API_KEY" in found["cure"]
    assert "vLLM, llama.cpp, Ollama" in found["cure"]
    assert "OPENAI_BASE_URL=http://127.0.0.1:PORT/v1" in found["cure"]


def test_it_names_the_endpoint_and_asks_nothing(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with serving(in_turn(chat("ok"))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        found = endpoint()
    assert (found["state"], server.calls) == ("ok", [])
    assert found["found"].endswith(" with a key")
    assert "secret" not in json.dumps(found)


def test_a_ping_is_one_call(monkeypatch):
    monkeypatch.setenv("OPENAI_MODEL", "m")
    with serving(in_turn(chat("ok", finish_reason="length"))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        found = endpoint("--ping")
    assert found["state"] == "ok"
    assert "with no key, model m, answered in " in found["found"]
    assert len(server.calls) == 1


def test_a_ping_that_fails_says_why(monkeypatch):
    monkeypatch.setenv("OPENAI_MODEL", "m")
    with serving(in_turn(failure(404, "no such model"))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        found = endpoint("--ping")
    assert found["state"] == "fix"
    assert "HTTP 404" in found["found"]
    assert "Check OPENAI_BASE_URL" in found["cure"]
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"OPENAI_BASE_URL": "localhost"}, "got 'localhost'"),
        ({"OPENAI_API_KEY": "k"}, "api.openai.com with a key, no model"),
    ],
)
def test_what_is_missing_is_named(monkeypatch, settings, found):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    said = endpoint("--ping")
    assert said["state"] == "fix"
    assert said["found"] == found
