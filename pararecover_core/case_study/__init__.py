"""Case studies: one run (or two beside each other) told in rounds, in every form a paper needs.

Source: paper appendix B, figure 2.
"""

from pararecover_core.case_study.build import build
from pararecover_core.case_study.files import FORMS, convert, files, zipped
from pararecover_core.case_study.html import html
from pararecover_core.case_study.model import HIDEABLE, Case, Source, Spec, Subject

__all__ = [
    "FORMS",
    "HIDEABLE",
    "Case",
    "Source",
    "Spec",
    "Subject",
    "build",
    "convert",
    "files",
    "html",
    "zipped",
]
