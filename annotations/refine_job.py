"""Automatic refinement in a session: dev is judged into the store, and every step is kept."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from annotations import sessions
from annotations.jobs import Job, Jobs
from annotations.judge_job import JudgeJob
from annotations.judging import open_failures
from annotations.prompts import import_prompt, list_prompts
from annotations.refining import PROPOSER, dev_items, prepare_run
from annotations.sessions import Side
from pararecover_core.errors import ParaRecoverError, StoreError
from pararecover_core.judges.prompt import Prompt
from pararecover_core.refine import (
    Interrupted,
    Judged,
    Outcome,
    Proposer,
    Rules,
    Step,
    refine,
)
from pararecover_core.refine_models import texts_of

if TYPE_CHECKING:
    from annotations.store import Store

Watch = Callable[[JudgeJob], object]


class StoreJudge:
    """The loop's judge: runs a prompt on dev, keeping every judgement in the store.

    Args:
        store: The database.
        session: Which session.
        model: Name of the judge's model.
        cancelled: Asked often; true ends the run under way.
        watch: Called with each run that begins, for whoever shows how far it is.
    """

    def __init__(
        self,
        store: "Store",
        session: int,
        model: str,
        cancelled: Callable[[], bool],
        watch: Watch = lambda job: None,
    ) -> None:
        self._store, self._session, self._model = store, session, model
        self._cancelled, self._watch = cancelled, watch

    def judge(self, prompt: Prompt) -> Judged:
        """Score every dev cell of the prompt; calls that were made before are not made again.

        Raises:
            Interrupted: It was stopped before every call was made.
            StoreError: The endpoint made it stop.
        """
        import_prompt(self._store, prompt, author=PROPOSER)
        made = prepare_run(
            self._store, self._session, self._model, prompt.name, Side.DEV, by=PROPOSER
        )
        job = JudgeJob(self._store, made.parts).start()
        self._watch(job)
        while job.running:
            job.wait(0.2)
            if self._cancelled():
                job.stop()
        if job.error is not None:
            raise job.error
        if job.outcome == "cancelled":
            raise Interrupted
        if job.outcome == "stopped":
            cure = "Look at the endpoint, then begin again: it goes on where it was"
            raise StoreError("judge", job.message, "an endpoint that answers", cure)
        spent, scorer = job.progress(), job.scorers[0]
        scores = sessions.judged(self._store, self._session, scorer, Side.DEV)
        reasons = sessions.reasons(self._store, self._session, scorer, Side.DEV)
        keys = {key for key, _ in sessions.wanted(self._store, self._session, Side.DEV)}
        failed = sum(one.replan in keys for one in open_failures(self._store, scorer))
        return Judged(scores, reasons, spent.usage, failed, spent.cost)


def steps_of(store: "Store", session: int, model: str, start: str) -> list[Step]:
    """The steps of one automatic refinement, oldest first.

    Args:
        store: The database.
        session: Which session.
        model: Name of the judge's model.
        start: Name of the prompt that it began with.
    """
    key = _key(model, start)
    rounds = sessions.history(store, session, ("try",))
    return [
        msgspec.convert(one.data["step"], Step, strict=False)
        for one in rounds
        if one.data["refinement"] == key
    ]


def _key(model: str, start: str) -> str:
    return f"{model}|{start}"


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
    watch: Watch = lambda job: None,
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
        watch: Called with each judging run that begins.
        cancelled: Asked often; true stops it, and the edit under way is taken up again later.

    Raises:
        InputError: People scored nothing that the prompt asks for.
        ConfigError: No endpoint is set.
    """

    def keep(step: Step) -> None:
        data = {"refinement": _key(model, start.name), "step": _plain(step)}
        sessions.add_round(store, session, "try", data, author=author, note=step.prompt.note)
        done(step)

    def version_of(text: str) -> int:
        """The version with this text, should the edit have been under way when it was stopped."""
        known = [one for one in list_prompts(store) if one.prompt.id == start.id]
        begun = (one for one in known if one.author == PROPOSER and one.prompt.text == text)
        newest = max(one.prompt.version for one in known)
        return next((one.prompt.version for one in begun), newest + 1)

    return refine(
        start,
        sessions.human(store, session, Side.DEV),
        StoreJudge(store, session, model, cancelled, watch),
        proposer,
        rules=rules,
        texts=texts_of(dev_items(store, session)),
        history=steps_of(store, session, model, start.name),
        done=keep,
        version_of=version_of,
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


class RefineJob(Job):
    """An automatic refinement in a thread of its own.

    Args:
        store: The database.
        session: Which session.
        model: Name of the judge's model.
        start: The prompt to begin with.
        proposer: Gives who proposes edits; called in the thread.
        rules: When an edit wins and when to stop.
        author: Who started it.

    Attributes:
        steps: Those so far, of an earlier run of the same refinement too.
        judging: The judging run that is going on, or the last one.
    """

    def __init__(
        self,
        store: "Store",
        session: int,
        model: str,
        start: Prompt,
        proposer: Callable[[], Proposer],
        *,
        rules: Rules | None = None,
        author: str = "",
    ) -> None:
        super().__init__("refine")
        self.model, self.start_prompt, self.rules = model, start, rules or Rules()
        self.steps: list[Step] = steps_of(store, session, model, start.name)
        self.judging: JudgeJob | None = None
        self.outcome: Outcome | None = None
        self.error: ParaRecoverError | None = None
        self._store, self._session = store, session
        self._proposer, self._author = proposer, author

    def work(self) -> None:
        """Refine until it ends or is stopped."""
        try:
            self.outcome = refine_session(
                self._store,
                self._session,
                self.model,
                self.start_prompt,
                self._proposer(),
                rules=self.rules,
                author=self._author,
                done=self.steps.append,
                watch=self._watch,
                cancelled=lambda: self.stopping,
            )
        except ParaRecoverError as error:
            self.error = error

    def _watch(self, judging: JudgeJob) -> None:
        self.judging = judging


_JOBS: Jobs[RefineJob] = Jobs("refine")


def start_refining(store: "Store", make: Callable[[], RefineJob]) -> RefineJob:
    """Begin a refinement that every page of this process can find again.

    Raises:
        StoreError: One is running on this database.
    """
    return _JOBS.start(store, make)


def current_refining(store: "Store") -> RefineJob | None:
    """The newest refinement of this process on a database, running or ended."""
    return _JOBS.current(store)
