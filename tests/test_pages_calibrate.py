"""Calibrate and Guidelines as pages: they run on the sample, on nothing, and refuse who may not."""

import shutil

import pytest
from streamlit.testing.v1 import AppTest

from annotations.store import Store


def _page(monkeypatch, db, *, role="admin", page="calibrate", **params):
    monkeypatch.setenv("PARARECOVER_DB", str(db))
    app = AppTest.from_function(_script, args=(page, role), default_timeout=60)
    for name, value in params.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def _script(page: str, role: str) -> None:
    from importlib import import_module

    import streamlit as st

    from ui import session
    from ui.access import Role, User

    st.cache_resource.clear()
    session.enter(User("Ada", Role(role)))
    import_module(f"pages.{page}").render()


def _said(app):
    return " ".join(str(block.proto.body) for block in app.get("html"))


@pytest.fixture
def sample(sample_database, tmp_path):
    return shutil.copy(sample_database, tmp_path / "sample.db")


def test_sample_data_gives_figures(monkeypatch, sample):
    app = _page(monkeypatch, sample)
    assert len(app.get("bidi_component")) == 1
    assert "pr-empty" not in _said(app).replace(".pr-empty", "")


def test_choices_come_from_the_link(monkeypatch, sample):
    app = _page(monkeypatch, sample, level="2", people="nobody")
    assert app.selectbox(key="calibrate_level").value == "2"
    assert app.selectbox(key="calibrate_people").value == "gold"


def test_an_empty_database_says_what_to_do(monkeypatch, tmp_path):
    Store(tmp_path / "empty.db")
    app = _page(monkeypatch, tmp_path / "empty.db")
    assert not app.get("bidi_component")
    assert "Nobody has scored in this database yet" in _said(app)
    assert 'href="dataset"' in _said(app)


def test_annotators_stay_blind(monkeypatch, sample):
    app = _page(monkeypatch, sample, role="annotator")
    assert not app.get("bidi_component")
    assert "open to adjudicators and admins" in _said(app)


def test_guidelines_need_no_database(monkeypatch, tmp_path):
    app = _page(monkeypatch, tmp_path / "none.db", page="guidelines", d="D3")
    assert len(app.get("bidi_component")) == 1
    assert not (tmp_path / "none.db").exists()
