"""LaTeX that is made here: no text is a command, and pdflatex compiles every table and figure."""

import shutil
import subprocess

import msgspec
import pytest

from pararecover_core.case_study import Spec, Subject, build, files
from pararecover_core.latex import WIDE, definitions, tex
from pararecover_core.records import Round
from pararecover_core.report.table import Cell, Report, Row, render
from tests.test_case_study import instance, plan, rounds, score, source, task  # noqa: F401

ODD = (
    r"_ % & # ~ ^ \ $ { } < > | \" ' ` [x] – — … × ± é Ž €"
    + " 结果 עברית العربية 🎂 e\u0301 \u202eb"
)
PACKAGES = r"\usepackage[T1]{fontenc}\usepackage{textcomp}\usepackage{tikz,booktabs}"


def compiled(body, folder, engine="pdflatex"):
    """What the engine says of a document with this body; it stops at the first error."""
    path = shutil.which(engine)
    if path is None:
        pytest.skip(f"no {engine} on PATH (Debian: texlive-latex-base and texlive-pictures)")
    whole = rf"\documentclass{{article}}{PACKAGES}\begin{{document}}{body}\end{{document}}"
    (folder / "doc.tex").write_text(whole, "utf-8")
    command = [path, "-interaction=nonstopmode", "-halt-on-error", "doc.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120)
    log = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, log[-2000:]
    assert (folder / "doc.pdf").stat().st_size > 1000
    return log


def table(text):
    cells = (Cell(51.25, 3, mark="↓ 7.3%"), Cell(1.0, 2, low=0.5, high=1.0))
    return Report(text, ("Model",), ("L1 SI", text), (Row((text,), cells),), (2, 2))


def test_text_of_any_script_is_text():
    assert tex("a_b 100%") == r"a\_b 100\%"
    assert tex("naïve Žižek €") == "naïve Žižek €"
    assert tex("e\u0301 結果 x") == r"é \prwide{結果} x"
    assert tex("a\u202eb\x00c\ud800") == "abc"
    assert definitions(tex("plain")) == []
    assert definitions(tex("結")) == [WIDE]


def test_pdflatex_compiles_a_table(tmp_path):
    source = render(table(ODD), "latex")
    log = compiled(source, tmp_path)
    assert "text of another script left out" in " ".join(log.split())


def test_pdflatex_compiles_a_case_study(tmp_path, rounds, instance):  # noqa: F811
    names = plan(task("1", ODD, ["root"], True), task("结果_2", "a_b", ["1"]), task("response"))
    scores = (score("D1", 0.5, note=ODD), score("D1", 1.0, "judge:m_1@sde-1", ODD))
    runs = (
        source((*rounds, Round(names, (), ODD)), scores=scores),
        msgspec.structs.replace(source(rounds), agent=ODD, scores=scores),
    )
    odd = dict.fromkeys((1, 2), ODD)
    subject = Subject(msgspec.structs.replace(instance, query=ODD), runs)
    made = files(build(subject, Spec(ODD, ODD, captions=odd, notes=odd)), "latex")
    text = made["case-study.tex"].decode()
    assert r"\prwide{" in text
    assert r"\begin{tabular}" in text
    compiled(text, tmp_path)
