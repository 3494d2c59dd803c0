"""One row of any container (spreadsheet, CSV, JSON) as instances, answers and scores.

A row of a results file may hold all three: the instance, one agent's answer to it, and scores by
people and judges. Each of them lands or is rejected by itself, so that a score that is no score
names its cell and the others of its row still count.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from pararecover_core.errors import InputError
from pararecover_core.formats import long_form
from pararecover_core.formats.columns import Header, ScoreColumn, understand
from pararecover_core.formats.items import (
    Answer,
    InstanceRef,
    Item,
    Mark,
    Place,
    Reject,
    ReplanRef,
)
from pararecover_core.formats.values import (
    human_scorer,
    is_agent_text,
    is_empty,
    judge_scorer,
    read_count,
    read_level,
    read_score,
    read_source,
    shown,
    split_agent_text,
)
from pararecover_core.literals import loads
from pararecover_core.plan import Plan, text_of
from pararecover_core.records import (
    Instance,
    Source,
    Tool,
    ToolCall,
    as_text,
    instance_key,
    match_calls,
    parse_calls,
    parse_tools,
)
from pararecover_core.taxonomy import split_labels

KNOWN = (
    "an instance (query, tool_list, plan, fun_call), an answer (id or query with thought, replan), "
    "scores (D1_human, diag_D1_score, ... or id, annotator, dimension, score), or an agent's log "
    "(messages, spans, ...)"
)
_CJK = re.compile(r"[\u3400-\u9fff]")
_TOOLS_KEPT = 256


class ReadOptions(msgspec.Struct, frozen=True):
    """What the caller knows about a file that the file itself may not say.

    Attributes:
        format: "auto", or the container: "jsonl" (also JSON), "csv" (also TSV) or "xlsx".
        agent: Agent of answers whose rows name none.
        annotator: Person behind human scores whose rows name none.
        judge: ``MODEL`` or ``MODEL@PROMPT`` behind judge scores whose rows name none.
        level: 1 or 2 instead of what the file says; 0 to believe the file.
        source: A ``Source`` instead of what the file says; "" to believe the file.
        human_suffix: End of the names of columns with people's scores.
        model_suffix: End of the names of columns with the judge's scores.
    """

    format: str = "auto"
    agent: str = ""
    annotator: str = ""
    judge: str = ""
    level: int = 0
    source: str = ""
    human_suffix: str = "_human"
    model_suffix: str = "_model"


class RowReader:
    """Reads rows of one file; remembers what its columns mean and what was said once."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self._headers: dict[tuple[str, ...], Header] = {}
        self._tools: dict[str, tuple[Tool, ...]] = {}
        self._said: set[tuple[str, str]] = set()

    def header(self, names: tuple[str, ...]) -> Header:
        """What columns of these names mean."""
        found = self._headers.get(names)
        if found is None:
            found = self._headers[names] = understand(
                names,
                human_suffix=self.options.human_suffix,
                model_suffix=self.options.model_suffix,
            )
        return found

    def items(self, place: Place, row: Mapping[str, Any], header: Header) -> Iterator[Item]:
        """Everything that a row holds; what cannot be used comes out as a reject."""
        if header.is_long:
            found = long_form.mark(place, row, header, self.options)
            if found is not None:
                yield found
        elif header.is_known:
            yield from self._wide(place, row, header)
        else:
            got = f"fields {shown(', '.join(row), 200)}" if row else "an empty object"
            yield Item(place, Reject(place, got, KNOWN, "Name the columns like one of these"))

    def _wide(self, place: Place, row: Mapping[str, Any], header: Header) -> Iterator[Item]:
        instance, found = None, 0
        if header.is_instance:
            try:
                instance = self._instance(row, header)
            except InputError as error:
                yield rejected(place, error)
                found += 1
        if not (header.is_answer or header.scores):
            if instance is not None:
                yield Item(place, instance)
            return
        for item in self._answer_and_marks(place, row, header, instance):
            found += 1
            yield item
        if not found:
            if instance is not None:
                yield Item(place, instance)
            else:
                yield Item(
                    place,
                    Reject(
                        place,
                        "neither a thought, a new plan nor a score",
                        "an answer or scores in the row",
                        "Fill the row in, or take it out",
                    ),
                )

    def _answer_and_marks(
        self, place: Place, row: Mapping[str, Any], header: Header, instance: Instance | None
    ) -> Iterator[Item]:
        try:
            ref = self._instance_ref(row, header)
        except InputError as error:
            yield rejected(place, error)
            return
        answer = self._answer(row, header, ref, instance)
        scored = any(not is_empty(row.get(c.column)) for c in header.scores)
        if (answer is not None or scored) and header.names_instance and _is_empty_ref(ref):
            yield rejected(place, long_form.no_instance())
            return
        if answer is None and scored and header.is_answer:  # an agent that gave no answer
            answer = Answer(ref, self._agent(row, header), "", None)
        if answer is not None:
            given = header.first(row, "tools") is not None
            yield Item(place, msgspec.structs.replace(answer, instance=instance if given else None))
        elif instance is not None and scored:
            yield Item(place, instance)
        yield from self._marks(place, row, header, self._replan_ref(row, header, ref, answer))

    def _agent(self, row: Mapping[str, Any], header: Header) -> str:
        return text_of(header.first(row, "agent")) or self.options.agent

    def _replan_ref(
        self, row: Mapping[str, Any], header: Header, ref: InstanceRef, answer: Answer | None
    ) -> ReplanRef:
        if answer is None:
            return ReplanRef(ref, agent=self._agent(row, header))
        return ReplanRef(ref, agent=answer.agent, thought=answer.thought, plan=answer.plan)

    # --- the instance -------------------------------------------------------------------------

    def _instance(self, row: Mapping[str, Any], header: Header) -> Instance | None:
        """The instance of a row.

        Returns:
            None where a row with an answer or scores does not hold the whole instance.

        Raises:
            InputError: A cell cannot be used; ``where`` is its column.
        """
        query, given = header.first(row, "query"), header.first(row, "plan")
        if query is None or given is None:
            if header.is_answer or header.scores:
                return None
            role = "query" if query is None else "plan"
            raise InputError(
                header.column(role), "nothing", f"a {role}", "Fill the cell in, or drop the row"
            )
        plan = Plan.parse(given)
        calls, calls_text = self._calls(row, header)
        level, source, tags = self._labels(row, header)
        query = as_text(query)
        id_, query_id = text_of(header.first(row, "id")), text_of(header.first(row, "query_id"))
        own = text_of(header.first(row, "instance")) if header.own else ""
        return Instance(
            own
            or instance_key(
                id=id_,
                query_id=query_id,
                level=level,
                source=source,
                query=query,
                plan=given,
                calls=calls_text,
            ),
            id_,
            query_id,
            level,
            source,
            query,
            self._tool_list(row, header),
            plan,
            match_calls(plan, calls),
            tags,
            as_text(header.first(row, "error_reason")),
            _count(row, header, "round_gt"),
            _count(row, header, "funcall_times_gt"),
            {} if header.is_answer or header.scores else _extra(row, header),
        )

    def _tool_list(self, row: Mapping[str, Any], header: Header) -> tuple[Tool, ...]:
        given = header.first(row, "tools")
        kept = self._tools.get(given) if isinstance(given, str) else None
        if kept is not None:
            return kept
        try:
            tools = parse_tools(given)
        except ValueError as error:
            raise InputError(
                header.column("tools"),
                f"{shown(given)} ({error})",
                "a list of tools as JSON",
                "Write the cell as JSON",
            ) from error
        if isinstance(given, str):  # the same task recurs under other error types and rounds
            if len(self._tools) >= _TOOLS_KEPT:
                self._tools.clear()
            self._tools[given] = tools
        return tools

    def _calls(self, row: Mapping[str, Any], header: Header) -> tuple[tuple[ToolCall, ...], Any]:
        """Observations, and what stands for them in the key: the same for text and object."""
        given = header.first(row, "calls")
        if given is None:
            return (), None
        try:
            value = loads(given) if isinstance(given, str) else given
            return parse_calls(value), value
        except ValueError as error:
            raise InputError(
                header.column("calls"),
                f"{shown(given)} ({error})",
                "a list of {name, arguments, results} as JSON",
                "Write the cell as JSON",
            ) from error

    def _labels(
        self, row: Mapping[str, Any], header: Header
    ) -> tuple[int, Source, tuple[str, ...]]:
        """Level, source and error labels, each from its own column or from the labels."""
        several = [_label_text(row.get(name)) for name in header.tags]
        single = [_label_text(row.get(name)) for name in header.tag]
        by_round = any(several) or not single
        given = list(several if by_round else single)
        while given and not given[-1]:
            given.pop()
        level = self.options.level or _level(row, header)
        if not level and header.tells_level and (given or not (several and single)):
            level = 2 if by_round else 1
        return level, self._source(row, header, given), tuple(map(_labels_of, given))

    def _source(self, row: Mapping[str, Any], header: Header, labels: list[str]) -> Source:
        if self.options.source:
            return Source(self.options.source)
        stated = read_source(header.first(row, "source"))
        if stated is not None:
            return stated
        made = row.get("sandbox")
        if isinstance(made, Mapping):  # our own generator says whose run went wrong
            return Source.ROLLOUT if made.get("agent") else Source.SANDBOX
        reason = header.first(row, "error_reason")
        if _CJK.search("".join(labels)) or (isinstance(reason, str) and _CJK.search(reason)):
            return Source.ROLLOUT
        plain = "error_reason" not in header.roles and not header.tags and any(labels)
        if plain and type(header.first(row, "query_id")) is not int:
            return Source.AUGMENTED
        return Source.UNKNOWN

    # --- what names an instance ---------------------------------------------------------------

    def _instance_ref(self, row: Mapping[str, Any], header: Header) -> InstanceRef:
        """How the row names its instance; what is only guessed at is left out."""
        level, source, _ = self._labels(row, header)
        sure = self.options.source or read_source(header.first(row, "source"))
        first = header.first
        return InstanceRef(
            key=text_of(first(row, "instance")),
            id=text_of(first(row, "id")),
            query_id=text_of(first(row, "query_id")),
            level=level,
            source=source.value if sure or source is Source.ROLLOUT else "",
            query=as_text(first(row, "query")),
            plan=first(row, "plan"),
        )

    # --- the answer ---------------------------------------------------------------------------

    def _answer(
        self,
        row: Mapping[str, Any],
        header: Header,
        ref: InstanceRef,
        instance: Instance | None,
    ) -> Answer | None:
        """The agent's answer in a row, taken apart where it is one text; None where none is."""
        if not header.is_answer:
            return None
        thought, plan = as_text(header.first(row, "thought")).strip(), header.first(row, "replan")
        raw, extra = as_text(header.first(row, "raw")), dict[str, Any]()
        maybe = header.first(row, "maybe_raw")
        if not raw and (is_agent_text(maybe) or (isinstance(maybe, str) and "tasks" in maybe)):
            raw = maybe
        if is_agent_text(plan):
            raw, plan = raw or plan, _cut(plan, extra)
            thought = thought or extra.pop("thought", "")
        elif raw and plan is None:
            plan = _cut(raw, extra)
            thought = thought or extra.pop("thought", "")
        extra.pop("thought", None)
        if not thought and plan is None:
            return None
        extra.update(_extra(row, header))
        return Answer(ref, self._agent(row, header), thought, plan, raw, extra=extra)

    # --- the scores ---------------------------------------------------------------------------

    def _marks(
        self, place: Place, row: Mapping[str, Any], header: Header, ref: ReplanRef
    ) -> Iterator[Item]:
        seen: dict[tuple[str, str], tuple[float, str]] = {}
        for column in header.scores:
            cell, note = row.get(column.column), as_text(row.get(column.note))
            if is_empty(cell) and is_empty(note):
                continue
            here = msgspec.structs.replace(place, column=column.column)
            scorer = self._scorer(row, header, column)
            if not scorer:
                yield from self._nobody(here, column)
                continue
            if is_empty(cell):
                yield Item(here, Mark(ref, column.dimension, scorer, None, note))
                continue
            try:
                value = read_score(cell, column.dimension)
            except ValueError as error:
                yield Item(here, bad_score(here, cell, str(error)))
                continue
            before = seen.setdefault((column.dimension, scorer), (value, column.column))
            if before[1] == column.column:
                yield Item(here, Mark(ref, column.dimension, scorer, value, note))
            elif before[0] != value:
                expected = f"{before[0]:g} as in column {before[1]}"
                cure = "Keep one of the two columns"
                yield Item(here, Reject(here, shown(cell), expected, cure))

    def _scorer(self, row: Mapping[str, Any], header: Header, column: ScoreColumn) -> str:
        """Who gave the scores of a column; "" where nobody says."""
        options = self.options
        annotator = text_of(header.first(row, "annotator")) or options.annotator
        judge = text_of(header.first(row, "judge")) or options.judge
        if column.kind == "program":
            return "program"
        if column.kind == "human" or (not column.kind and annotator):
            return human_scorer(column.who or annotator)
        if column.kind == "judge" or judge:
            return judge_scorer(column.who or judge, text_of(header.first(row, "prompt")))
        return ""

    def _nobody(self, place: Place, column: ScoreColumn) -> Iterator[Item]:
        """Said once a column: it would be the same for every row."""
        if (place.file, column.column) in self._said:
            return
        self._said.add((place.file, column.column))
        yield Item(
            place,
            Reject(
                place,
                "scores that do not say who gave them (this row and those below)",
                f"a name such as {column.dimension}_human or {column.dimension}_model",
                "Rename the column, add an annotator column, or name annotator or judge on import",
            ),
        )


def rejected(place: Place, error: InputError) -> Item:
    """An error whose ``where`` is a column, as a reject of that cell."""
    here = msgspec.structs.replace(place, column=error.where)
    return Item(here, Reject(here, error.got, error.expected, error.cure))


def bad_score(place: Place, cell: Any, expected: str) -> Reject:
    """A cell that holds no score."""
    return Reject(place, shown(cell), expected, "Correct the cell, or empty it for no score")


def _cut(text: str, extra: dict[str, Any]) -> str | None:
    """The plan inside an agent's text; its thought and final answer go into ``extra``."""
    parts = split_agent_text(text)
    extra["thought"] = parts.thought
    if parts.answer:
        extra["final_answer"] = parts.answer
    return parts.plan or None


def _count(row: Mapping[str, Any], header: Header, role: str) -> int | None:
    value = header.first(row, role)
    try:
        return read_count(value)
    except ValueError as error:
        raise InputError(
            header.column(role), shown(value), str(error), "Correct the cell, or empty it"
        ) from error


def _level(row: Mapping[str, Any], header: Header) -> int:
    value = header.first(row, "level")
    if value is None:
        return 0
    try:
        return read_level(value)
    except ValueError as error:
        raise InputError(
            header.column("level"), shown(value), str(error), "Correct the cell, or empty it"
        ) from error


def _label_text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list | tuple):
        return ", ".join(filter(None, map(text_of, value)))
    return "" if is_empty(value) else text_of(value)


@lru_cache(maxsize=512)
def _labels_of(text: str) -> str:
    """The labels of one cell in the paper's spelling; several stay together, one round's."""
    return ", ".join(split_labels(text))


def _extra(row: Mapping[str, Any], header: Header) -> dict[str, Any]:
    if not header.extra:
        return {}
    return {name: row[name] for name in header.extra if not is_empty(row.get(name))}


def _is_empty_ref(ref: InstanceRef) -> bool:
    return not (ref.key or ref.id or ref.query_id or ref.query)
