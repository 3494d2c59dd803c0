"""What the columns of a table, or the fields of a JSON record, mean.

Names are matched regardless of case, white space, byte order marks and separators. One table
serves spreadsheets, CSV and JSON, so that the same content is read alike from each.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from pararecover_core.formats.values import COMPUTED, is_empty
from pararecover_core.rubric import DIMENSIONS

ROLES: dict[str, tuple[str, ...]] = {
    "id": ("id", "instanceid", "sampleid", "itemid"),
    "query_id": ("queryid", "qid"),
    "level": ("level",),
    "source": ("source",),
    "query": ("query", "userquery", "question"),
    "tools": ("toollist", "tools"),
    "plan": ("prevplan", "previousplan", "prevplandag", "plan", "plandag", "originalplan"),
    "calls": ("funcall", "funcalls", "toolresult", "toolresults", "observations", "observation"),
    "thought": ("thought", "thoughts"),
    "replan": ("replan", "replandag", "newplan", "newplandag"),
    "raw": ("raw", "rawoutput", "rawtext", "modeloutput", "agentoutput"),
    "maybe_raw": ("output", "response", "completion", "prediction", "answer"),
    "agent": ("agent", "agentname", "model", "modelname"),
    "round_gt": ("roundgt",),
    "funcall_times_gt": ("funcalltimesgt",),
    "error_reason": ("errorreason",),
    "annotator": ("annotator", "annotatorname", "rater"),
    "judge": ("judge", "judgemodel", "judgename"),
    "prompt": ("prompt", "promptid", "promptversion", "judgeprompt"),
    "scorer": ("scorer",),
    "dimension": ("dimension", "subdimension", "dim"),
    "score": ("score", "value", "rating"),
    "note": ("note", "notes", "comment", "comments", "reason", "remark"),
    "at": ("at", "time", "timestamp", "scoredat"),
    "rubric": ("rubric", "rubricversion"),
    "revealed": ("revealed",),
    "instance": ("instance", "instancekey"),
}
"""Role to the folded names that play it, the preferred one first."""

LONG_FORM = (
    "replan", "instance", "id", "query_id", "level", "source", "agent",
    "dimension", "scorer", "score", "note", "at", "rubric", "revealed", "prompt",
)  # fmt: skip
"""The columns of our own export of scores, in order."""

FIRST_LONG_FORM = LONG_FORM[:-1]
"""The same before the prompt had a column."""

WIDE_FORM = (
    "instance", "id", "query_id", "level", "source", "query", "tool_list", "plan", "fun_call",
    "round_gt", "funcall_times_gt", "error_reason", "agent", "thought", "replan", "raw",
    "annotator", "judge",
)  # fmt: skip
"""The columns of our own wide export before those of error labels and scores, in order."""

_LONG_ONLY = ("scorer", "dimension", "score", "note", "at", "rubric", "revealed")
_ROLE_OF = {name: (role, rank) for role, names in ROLES.items() for rank, name in enumerate(names)}
_TAG = re.compile(r"(?:tags?|errortypes?|errorlabels?|errortags?)(\d*)")
_HOME = {"diag": "D", "evo": "E", "struct": "S"}
_BEFORE = {*_HOME, "human", "model", "judge", "llm"}
_VALUE, _NOTE = {"score", "value", "rating"}, {"reason", "note", "comment", "rationale"}


def fold(name: Any) -> str:
    """A column name without case, marks, white space and separators."""
    text = unicodedata.normalize("NFKC", str(name)).casefold()
    return re.sub(r"[\s_\-.:\ufeff]+", "", text)


class ScoreColumn(msgspec.Struct, frozen=True):
    """A column that holds one scorer's scores of one sub-dimension.

    Attributes:
        note: Column of the notes or reasons, "" where none.
        kind: "human", "judge", "program", or "" where the name does not say.
        who: Name of the person or model inside the column name, "" where none.
        home: Whether the prefix is the sub-dimension's own (``diag_`` with D1 to D5).
    """

    column: str
    dimension: str
    kind: str
    who: str = ""
    home: bool = True
    note: str = ""


class Header(msgspec.Struct, frozen=True, dict=True):
    """What each column means.

    Attributes:
        roles: Role to columns, the preferred one first.
        scores: Columns of scores, one per sub-dimension and scorer.
        tag: Columns of the one error label of LEVEL-1.
        tags: Columns of the labels by round of LEVEL-2, in order.
        extra: Columns that mean nothing to us; they are kept.
        repeated: Names that two columns share, of columns that mean something.
        own: Whether these are the columns of our own export.
        masked: Whether its CSV masks what no encoding holds (exports before the prompt had a
            column did not).
    """

    roles: dict[str, tuple[str, ...]]
    scores: tuple[ScoreColumn, ...] = ()
    tag: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    own: bool = False
    masked: bool = False

    def first(self, row: Mapping[str, Any], role: str) -> Any:
        """The first non-empty cell of a role, else None."""
        for column in self.roles.get(role, ()):
            value = row.get(column)
            if value is not None and not is_empty(value):
                return value
        return None

    def column(self, role: str) -> str:
        """The preferred column of a role, or the role's own name where there is none."""
        return self.roles.get(role, (role,))[0]

    @cached_property
    def tells_level(self) -> bool:
        """Whether the label columns are those of the published files (``tag``, ``tag_1``)."""
        return any(fold(name).startswith("tag") for name in (*self.tag, *self.tags))

    @cached_property
    def is_long(self) -> bool:
        """One score a row."""
        return "dimension" in self.roles and "score" in self.roles

    @cached_property
    def is_instance(self) -> bool:
        """Rows hold a query and a previous plan."""
        return "query" in self.roles and "plan" in self.roles

    @cached_property
    def is_answer(self) -> bool:
        """Rows may hold an agent's answer."""
        return any(role in self.roles for role in ("thought", "replan", "raw", "maybe_raw"))

    @cached_property
    def names_instance(self) -> bool:
        """Rows say which instance they are about."""
        return any(role in self.roles for role in ("instance", "id", "query_id", "query"))

    @cached_property
    def is_known(self) -> bool:
        """Whether anything can be read from such rows."""
        answers = self.is_answer and self.names_instance
        return self.is_long or self.is_instance or answers or bool(self.scores)


def understand(
    names: Sequence[str], *, human_suffix: str = "_human", model_suffix: str = "_model"
) -> Header:
    """What columns of these names mean.

    Args:
        names: Column names as given, in order.
        human_suffix: End of the names of columns with people's scores.
        model_suffix: End of the names of columns with the judge's scores.
    """
    ranked: dict[str, list[tuple[int, str]]] = {}
    folded = [fold(name) for name in names]
    long_form = "dimension" in folded and any(name in folded for name in ROLES["score"])
    scores: list[ScoreColumn] = []
    tag: list[str] = []
    tags: list[tuple[int, str]] = []
    extra: list[str] = []
    for name, key in zip(names, folded, strict=True):
        role, rank = _ROLE_OF.get(key, ("", 0))
        if role in _LONG_ONLY and not long_form:
            role = ""
        score = None if role else _score_column(name, human_suffix, model_suffix)
        labels = _TAG.fullmatch(key)
        if role:
            ranked.setdefault(role, []).append((rank, name))
        elif score:
            scores.append(score)
        elif labels and labels[1]:
            tags.append((int(labels[1]), name))
        elif labels:
            tag.append(name)
        else:
            extra.append(name)
    roles = {role: tuple(name for _, name in sorted(found)) for role, found in ranked.items()}
    _split_plans(roles)
    if any(role in roles for role in ("thought", "replan", "raw")):
        extra.extend(roles.pop("maybe_raw", ()))
    wide = tuple(names[: len(WIDE_FORM)]) == WIDE_FORM
    used = [key for name, key in zip(names, folded, strict=True) if name not in extra]
    return Header(
        roles=roles,
        scores=_with_notes(scores),
        tag=tuple(tag),
        tags=tuple(name for _, name in sorted(tags)),
        extra=tuple(extra),
        repeated=tuple(sorted({key for key in used if used.count(key) > 1})),
        own=tuple(names) in (LONG_FORM, FIRST_LONG_FORM) or wide,
        masked=tuple(names) == LONG_FORM or wide,
    )


def _split_plans(roles: dict[str, tuple[str, ...]]) -> None:
    """Beside a column named as the previous plan, ``plan`` is the new one."""
    plans = roles.get("plan", ())
    plain = tuple(name for name in plans if fold(name) in ("plan", "plandag"))
    if plain and len(plain) < len(plans) and "replan" not in roles:
        roles["plan"] = tuple(name for name in plans if name not in plain)
        roles["replan"] = plain


def _score_column(name: str, human_suffix: str, model_suffix: str) -> ScoreColumn | None:
    """A score or note column from its name; ``note`` is set to the name itself for notes."""
    text, kind = unicodedata.normalize("NFKC", name).strip("\ufeff \t\r\n").casefold(), ""
    for suffix, meant in ((human_suffix, "human"), (model_suffix, "judge")):
        if suffix and text.endswith(suffix.casefold()):
            text, kind = text[: -len(suffix)], meant
            break
    parts = [part for part in re.split(r"[\s_\-.:]+", text) if part]
    place = next((i for i, part in enumerate(parts) if part.upper() in DIMENSIONS), -1)
    if place < 0 or any(part not in _BEFORE for part in parts[:place]):
        return None
    dimension, after = parts[place].upper(), parts[place + 1 :]
    words = {*parts[:place], *after}
    note = bool(words & _NOTE)
    after = [part for part in after if part not in _VALUE and part not in _NOTE]
    if after[:1] == ["sim"] or "sim" in words:
        kind, after = "program", [part for part in after if part != "sim"]
    for part in (*parts[:place], *after[:1]):
        kind = kind or {"human": "human", "model": "judge", "judge": "judge", "llm": "judge"}.get(
            part, ""
        )
    prefix = next((part for part in parts[:place] if part in _HOME), "")
    who = " ".join(part for part in after if part not in ("human", "model", "judge", "llm"))
    if who and not kind:
        return None
    if not kind:
        kind = "judge" if prefix else ("program" if dimension in COMPUTED else "")
    home = not prefix or _HOME[prefix] == dimension[0]
    return ScoreColumn(name, dimension, kind, who, home, name if note else "")


def _with_notes(columns: Sequence[ScoreColumn]) -> tuple[ScoreColumn, ...]:
    """Score columns, a sub-dimension's own prefix first, each with its column of notes."""
    notes = {(_group(c)): c.column for c in columns if c.note}
    kept = [
        msgspec.structs.replace(c, note=notes.get(_group(c), "")) for c in columns if not c.note
    ]
    return tuple(sorted(kept, key=lambda c: (DIMENSIONS.index(c.dimension), not c.home)))


def _group(column: ScoreColumn) -> tuple[str, str, str, bool]:
    return column.dimension, column.kind, column.who, column.home
