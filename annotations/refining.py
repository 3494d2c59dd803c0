"""Versions of a judge in a session: figures on dev, what each changed, running the next one."""

import difflib
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from annotations import sessions
from annotations.judge_job import JudgeJob
from annotations.judges import Order, Prepared, prepare
from annotations.judging import Scope, open_failures, read_items
from annotations.judging import Todo as Call
from annotations.prompts import Listed, import_prompt, list_prompts
from annotations.sessions import Side
from pararecover_core.agreement import Agreement, measure
from pararecover_core.compare import Comparison, compare, repeated_runs
from pararecover_core.completions import Usage
from pararecover_core.errors import ParaRecoverError, StoreError
from pararecover_core.judges.llm_judge import Item
from pararecover_core.judges.prompt import Prompt
from pararecover_core.refine import Judged, Outcome, Proposer, Rules, Step, refine
from pararecover_core.refine_models import texts_of

if TYPE_CHECKING:
    from annotations.store import Store

_SCORER = re.compile(r"judge:(?P<model>.+)@(?P<prompts>[^@#]+)(?:#\d+)?\Z")
PROPOSER = "proposer"
"""Author of versions that a model proposed."""


class Named(NamedTuple):
    """Model and prompts that a scorer name tells; prompts are empty for other names."""

    model: str
    prompts: tuple[str, ...]


def named(scorer: str) -> Named:
    """What ``judge:MODEL@PROMPT+PROMPT`` says."""
    found = _SCORER.match(scorer)
    if found is None:
        return Named(scorer, ())
    return Named(found["model"], tuple(found["prompts"].split("+")))


class Version(msgspec.Struct, frozen=True):
    """A judge with certain versions of its prompts, as it stands on dev.

    Attributes:
        edited: The prompt that tells it from its parent, None for a first version.
        parent: Scorer name of the version before, "" for none.
        found: Figures on dev.
        changed: Against the parent; None without one.
    """

    scorer: str
    prompts: tuple[Prompt, ...]
    author: str
    note: str
    edited: Prompt | None
    parent: str
    found: Agreement
    changed: Comparison | None

    @property
    def label(self) -> str:
        """Short name: the edited prompt, else all of them."""
        return self.edited.name if self.edited else "+".join(p.name for p in self.prompts)


def judges(store: "Store", session: int) -> list[str]:
    """Models that judged dev with prompts that are here, in order of their first score."""
    known = {one.prompt.name for one in list_prompts(store)}
    models = [named(scorer) for scorer in sessions.scorers(store, session)]
    return list(dict.fromkeys(m.model for m in models if m.prompts and known >= set(m.prompts)))


def versions(store: "Store", session: int, model: str, *, resamples: int = 1000) -> list[Version]:
    """Every version of a judge that scored dev, newest first."""
    known = {one.prompt.name: one for one in list_prompts(store)}
    mine = [s for s in sessions.scorers(store, session) if named(s).model == model]
    mine = [s for s in mine if named(s).prompts and all(p in known for p in named(s).prompts)]
    human = sessions.human(store, session, Side.DEV)
    made = [_version(store, session, s, mine, known, human, resamples) for s in mine]
    return made[::-1]


def _version(
    store: "Store",
    session: int,
    scorer: str,
    mine: Sequence[str],
    known: Mapping[str, Listed],
    human: Mapping[tuple[str, str], float],
    resamples: int,
) -> Version:
    listed = [known[name] for name in named(scorer).prompts]
    edited, parent = _parent(scorer, mine, known)
    changed = None
    if parent:
        before = sessions.judged(store, session, parent, Side.DEV)
        after = sessions.judged(store, session, scorer, Side.DEV)
        changed = compare(human, before, after, resamples=resamples)
    newest = edited or listed[0]
    return Version(
        scorer,
        tuple(one.prompt for one in listed),
        newest.author,
        newest.prompt.note,
        edited.prompt if edited else None,
        parent,
        measure(sessions.cells(store, session, scorer, Side.DEV), resamples=resamples),
        changed,
    )


def _parent(
    scorer: str, mine: Sequence[str], known: Mapping[str, Listed]
) -> tuple[Listed | None, str]:
    """The edited prompt and the version before, where that one judged dev as well."""
    model, names = named(scorer)
    for place, name in enumerate(names):
        one = known[name]
        while one.prompt.parent and (up := known.get(f"{one.prompt.id}-{one.prompt.parent}")):
            other = "+".join([*names[:place], up.prompt.name, *names[place + 1 :]])
            if f"judge:{model}@{other}" in mine:
                return known[name], f"judge:{model}@{other}"
            one = up
    return None, ""


# Texts


class Line(NamedTuple):
    """One line of a difference: kind "same", "added" or "removed", its number, and its parts.

    Attributes:
        parts: (text, whether it changed), so that changed words can be marked.
    """

    kind: str
    before: int
    after: int
    parts: tuple[tuple[str, bool], ...]


def difference(before: str, after: str) -> list[Line]:
    """What an edit changed, line by line, changed words marked."""
    old, new = before.splitlines(), after.splitlines()
    found: list[Line] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "equal":
            pairs = zip(range(a, b), range(c, d), strict=True)
            found += [Line("same", x + 1, y + 1, ((old[x], False),)) for x, y in pairs]
            continue
        gone, come = old[a:b], new[c:d]
        for place in range(max(len(gone), len(come))):
            left = gone[place] if place < len(gone) else None
            right = come[place] if place < len(come) else None
            marks = _marked(left, right)
            if left is not None:
                found.append(Line("removed", a + place + 1, 0, marks[0]))
            if right is not None:
                found.append(Line("added", 0, c + place + 1, marks[1]))
    return found


Parts = tuple[tuple[str, bool], ...]


def _marked(left: str | None, right: str | None) -> tuple[Parts, Parts]:
    if left is None or right is None:
        return ((left or "", True),), ((right or "", True),)
    one, other = re.findall(r"\s+|\S+", left), re.findall(r"\s+|\S+", right)
    old: list[tuple[str, bool]] = []
    new: list[tuple[str, bool]] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, one, other, False).get_opcodes():
        if a < b:
            old.append(("".join(one[a:b]), tag != "equal"))
        if c < d:
            new.append(("".join(other[c:d]), tag != "equal"))
    return tuple(old), tuple(new)


def dev_items(store: "Store", session: int) -> dict[str, Item]:
    """The dev items with their content, by replan key."""
    keys = dict.fromkeys(key for key, _ in sessions.wanted(store, session, Side.DEV))
    calls = [Call(key, 0, ()) for key in keys]
    return {one.replan: item for one, item in read_items(store, _stored(store, calls))}


def _stored(store: "Store", calls: Sequence[Call]) -> list[Call]:
    with store.read() as db:
        whole = {row[0] for row in db.execute("SELECT key FROM replan WHERE NOT stub")}
    return [call for call in calls if call.replan in whole]


def repeats(store: "Store", session: int, text: str) -> list[str]:
    """Runs of eight or more words that a prompt takes from dev samples."""
    return repeated_runs(text, texts_of(dev_items(store, session)))


# Running


def prepare_run(
    store: "Store", session: int, model: str, prompts: str, side: Side, *, by: str = ""
) -> Prepared:
    """What a run of a judge on one side would do: exactly the cells that the session asks for.

    Raises:
        InputError: A prompt is unknown.
        ConfigError: No endpoint is set.
    """
    wanted: dict[str, set[str]] = {}
    for replan, dimension in sessions.wanted(store, session, side):
        wanted.setdefault(replan, set()).add(dimension)
    order = Order(model, prompts, scope=Scope(replans=tuple(wanted)), started_by=by)
    made = prepare(store, order)
    parts = [
        msgspec.structs.replace(part, todo=[c for call in part.todo if (c := _cut(call, wanted))])
        for part in made.parts
    ]
    return msgspec.structs.replace(made, parts=parts)


def _cut(call: Call, wanted: Mapping[str, set[str]]) -> Call | None:
    dimensions = tuple(d for d in call.dimensions if d in wanted[call.replan])
    return call._replace(dimensions=dimensions) if dimensions else None


class StoreJudge:
    """The loop's judge: runs a prompt on dev, keeping every judgement in the store.

    Args:
        store: The database.
        session: Which session.
        model: Name of the judge's model.
        cancelled: Asked often; true ends the run under way.
    """

    def __init__(
        self, store: "Store", session: int, model: str, cancelled: Callable[[], bool]
    ) -> None:
        self._store, self._session, self._model = store, session, model
        self._cancelled = cancelled

    def judge(self, prompt: Prompt) -> Judged:
        """Score every dev cell of the prompt; calls that were made before are not made again."""
        import_prompt(self._store, prompt, author=PROPOSER)
        made = prepare_run(
            self._store, self._session, self._model, prompt.name, Side.DEV, by=PROPOSER
        )
        job = JudgeJob(self._store, made.parts).start()
        while job.running:
            job.wait(0.2)
            if self._cancelled():
                job.stop()
        if job.error is not None:
            raise job.error
        if job.outcome == "stopped":
            cure = "Look at the endpoint, then run the same command again: it goes on"
            raise StoreError("judge", job.message, "an endpoint that answers", cure)
        spent, scorer = job.progress(), job.scorers[0]
        scores = sessions.judged(self._store, self._session, scorer, Side.DEV)
        reasons = sessions.reasons(self._store, self._session, scorer, Side.DEV)
        keys = {key for key, _ in sessions.wanted(self._store, self._session, Side.DEV)}
        failed = sum(one.replan in keys for one in open_failures(self._store, scorer))
        return Judged(scores, reasons, spent.usage, failed, spent.cost)


def steps_of(store: "Store", session: int, key: str) -> list[Step]:
    """The steps of one automatic refinement, oldest first."""
    rounds = sessions.history(store, session, ("try",))
    return [
        msgspec.convert(one.data["step"], Step, strict=False)
        for one in rounds
        if one.data["refinement"] == key
    ]


def refine_session(
    store: "Store",
    session: int,
    model: str,
    start: Prompt,
    proposer: Proposer,
    *,
    rules: Rules | None = None,
    author: str = "",
    done: Callable[[Step], object] = lambda step: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Refine a prompt automatically; a run that was stopped goes on after its steps.

    Args:
        store: The database.
        session: Which session; only its dev side is read.
        model: Name of the judge's model.
        start: The prompt to begin with.
        proposer: Who proposes edits.
        rules: When an edit wins and when to stop.
        author: Who started it.
        done: Called with each step.
        cancelled: Asked often; true stops it.

    Raises:
        InputError: People scored nothing that the prompt asks for.
        ConfigError: No endpoint is set.
    """
    key = f"{model}|{start.name}"

    def keep(step: Step) -> None:
        data = {"refinement": key, "step": _plain(step)}
        sessions.add_round(store, session, "try", data, author=author, note=step.prompt.note)
        done(step)

    def next_version() -> int:
        return 1 + max(
            one.prompt.version for one in list_prompts(store) if one.prompt.id == start.id
        )

    return refine(
        start,
        sessions.human(store, session, Side.DEV),
        StoreJudge(store, session, model, cancelled),
        proposer,
        rules=rules,
        texts=texts_of(dev_items(store, session)),
        history=steps_of(store, session, key),
        done=keep,
        next_version=next_version,
        cancelled=cancelled,
    )


def _plain(step: Step) -> Any:
    """A step as JSON data; figures that are undefined are left out, NaN is no JSON."""
    known = step.paired is not None and step.paired.n > 0
    return _without_nan(
        msgspec.to_builtins(step if known else msgspec.structs.replace(step, paired=None))
    )


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nan(v) for k, v in value.items() if v == v}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    return value


class RefineJob:
    """An automatic refinement in a thread of its own.

    Args:
        work: Runs it; gets what to call with each step, and what to ask whether to stop.
    """

    def __init__(
        self, work: Callable[[Callable[[Step], object], Callable[[], bool]], Outcome]
    ) -> None:
        self.steps: list[Step] = []
        self.outcome: Outcome | None = None
        self.error: ParaRecoverError | None = None
        self._work, self._stop = work, threading.Event()
        self._thread = threading.Thread(target=self._run, name="refine", daemon=True)

    def start(self) -> "RefineJob":
        """Begin; returns at once."""
        self._thread.start()
        return self

    @property
    def running(self) -> bool:
        """Whether it still works."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ask it to stop; what was tried stays, and it can go on later."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it has ended, or for so many seconds."""
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            self.outcome = self._work(self.steps.append, self._stop.is_set)
        except ParaRecoverError as error:
            self.error = error


_JOBS: dict[Path, RefineJob] = {}
_STARTING = threading.Lock()


def start_refining(
    store: "Store", work: Callable[[Callable[[Step], object], Callable[[], bool]], Outcome]
) -> RefineJob:
    """Begin a refinement that every page of this process can find again.

    Raises:
        StoreError: One is running on this database.
    """
    with _STARTING:
        known = _JOBS.get(store.path)
        if known is not None and known.running:
            cure = "Wait for it, or stop it"
            raise StoreError("refine", "one that is still going", "one at a time", cure)
        _JOBS[store.path] = RefineJob(work).start()
        return _JOBS[store.path]


def current_refining(store: "Store") -> RefineJob | None:
    """The newest refinement of this process on a database, running or ended."""
    return _JOBS.get(store.path)


def spent(steps: Sequence[Step]) -> tuple[Usage, float, bool]:
    """Tokens (all under prompt), US dollars, and whether some calls had no known price."""
    tokens = sum(step.tokens for step in steps)
    return Usage(tokens), sum(step.cost for step in steps), any(s.unpriced for s in steps)
