"""All forms of a case study as files: one page, or a folder of pictures in a ZIP."""

import io
import zipfile
from collections.abc import Callable

from pararecover_core.case_study.html import html
from pararecover_core.case_study.latex import latex
from pararecover_core.case_study.markdown import markdown
from pararecover_core.case_study.model import Case, RoundView, Side
from pararecover_core.case_study.svg import svg
from pararecover_core.errors import InputError
from pararecover_core.literals import dumps

FORMS: dict[str, str] = {
    "html": "One HTML page that opens offline",
    "markdown": "Markdown with pictures",
    "latex": "LaTeX with TikZ",
    "svg": "SVG of each round",
    "png": "PNG of each round",
    "pdf": "PDF of each round",
    "json": "The data as JSON",
}
"""Every form, with its name for people."""

_PNG_SCALE = 2.5
_TIME = (2000, 1, 1, 0, 0, 0)


def files(case: Case, form: str) -> dict[str, bytes]:
    """The files of a form.

    Args:
        case: What to tell.
        form: A key of ``FORMS``.

    Returns:
        Content by file name; one file for html, latex and json.

    Raises:
        InputError: The form is unknown, or the page would be too large.
    """
    writers: dict[str, Callable[[Case], dict[str, bytes]]] = {
        "html": lambda c: {"case-study.html": html(c).encode("utf-8")},
        "latex": lambda c: {"case-study.tex": _bytes(latex(c))},
        "json": lambda c: {"case-study.json": _bytes(dumps(c.data()) + "\n")},
        "markdown": _markdown,
        "svg": lambda c: _pictures(c, "svg"),
        "png": lambda c: _pictures(c, "png"),
        "pdf": lambda c: _pictures(c, "pdf"),
    }
    if form not in writers:
        expected = f"one of {', '.join(FORMS)}"
        raise InputError("form", repr(form), expected, "Correct the name")
    return writers[form](case)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def zipped(content: dict[str, bytes]) -> bytes:
    """Files as a ZIP archive; the same files give the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name, _TIME), data, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def picture_name(side: int, number: int, kind: str) -> str:
    """Name of the picture of a side, from 0, and a round."""
    return f"{'ab'[side]}-round-{number:02d}.{kind}"


def round_svg(one: RoundView, side: Side) -> str:
    """The picture of a round as an SVG file."""
    origin = side.origin.node if side.origin and one.number >= side.origin.round else ""
    label = f"Round {one.number}, {one.caption}. {one.picture['alt']}"
    return svg(one.picture, reached=one.reached, origin=origin, label=label)


def convert(image: str, kind: str) -> bytes:
    """An SVG file as "svg", "png" or "pdf"."""
    if kind == "svg":
        return _bytes(image)
    import vl_convert  # 40 MB: only where a picture is asked for

    if kind == "png":
        return vl_convert.svg_to_png(image, scale=_PNG_SCALE)
    return vl_convert.svg_to_pdf(image)


def _pictures(case: Case, kind: str) -> dict[str, bytes]:
    return {
        picture_name(place, one.number, kind): convert(round_svg(one, side), kind)
        for place, side in enumerate(case.sides)
        for one in side.rounds
    }


def _markdown(case: Case) -> dict[str, bytes]:
    text = markdown(case, lambda place, number: picture_name(place, number, "png"))
    return {"case-study.md": _bytes(text), **_pictures(case, "png")}
