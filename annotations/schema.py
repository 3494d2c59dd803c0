"""The database as SQL: tables, views, indices and the triggers that keep logs append-only.

What is narrow and searched stands apart from what is wide and opened one at a time: ``instance``
and ``instance_body`` share their number ``n``, so do ``replan`` and ``replan_body``.

Source: design of the store; how a score log replays is in ``score_log``.
"""

from annotations.case_schema import CASE_TABLES, CASES
from annotations.judge_schema import JUDGING, JUDGING_LOGS, JUDGING_TABLES
from annotations.search_schema import SEARCH, SEARCH_TABLES
from annotations.session_schema import SESSION_LOGS, SESSION_TABLES, SESSIONS
from annotations.training_schema import TRAINING, TRAINING_TABLES

APPLICATION_ID = 0x50615265
"""Marks a SQLite file as ours ("PaRe" in ASCII)."""

VERSION = 8
"""Schema version of this release (``PRAGMA user_version``)."""

RUN_COLUMNS = {
    "replan": "TEXT NOT NULL DEFAULT ''",  # key of the answer that was put into it, '' for none
    "outcome": "TEXT NOT NULL DEFAULT ''",
    "correct": "INTEGER",  # whether its answer is right, NULL where unknown
    "taken": "INTEGER",  # rounds as the run counts them, NULL where it does not
    "round_limit": "INTEGER",  # rounds at which it would have failed, NULL for the usual number
}
"""Columns of a trajectory that repeat what its measures say, and their types."""

_RUN_COLUMNS = ",\n  ".join(f"{name} {kind}" for name, kind in RUN_COLUMNS.items())

RECORDS = f"""
CREATE TABLE instance (
  n INTEGER PRIMARY KEY,               -- order of import
  key TEXT NOT NULL UNIQUE,            -- content key
  file_id TEXT NOT NULL DEFAULT '',    -- the id its file gave
  query_id TEXT NOT NULL DEFAULT '',
  level INTEGER NOT NULL DEFAULT 0,
  source TEXT NOT NULL DEFAULT 'unknown',
  query TEXT NOT NULL DEFAULT '',
  query_key TEXT NOT NULL DEFAULT '',  -- key of the query with white space folded
  round_gt INTEGER,
  funcall_times_gt INTEGER,
  s5 INTEGER,                          -- of the previous plan
  executed_rounds INTEGER,
  error_reason TEXT NOT NULL DEFAULT '',
  stub INTEGER NOT NULL DEFAULT 0      -- 1: named by a score or an answer, content not imported
);
CREATE INDEX instance_file_id ON instance (file_id);
CREATE INDEX instance_query_id ON instance (query_id);
CREATE INDEX instance_query_key ON instance (query_key);
CREATE INDEX instance_level ON instance (level, source);

CREATE TABLE instance_body (
  n INTEGER PRIMARY KEY REFERENCES instance (n),
  body BLOB NOT NULL                   -- JSON of records.to_data
);

CREATE TABLE instance_error (
  instance TEXT NOT NULL REFERENCES instance (key),
  round INTEGER NOT NULL,              -- from 1
  error_type TEXT NOT NULL,            -- the paper's spelling, or the label as given
  PRIMARY KEY (instance, round, error_type)
) WITHOUT ROWID;
CREATE INDEX instance_error_type ON instance_error (error_type, instance);

CREATE TABLE replan (
  n INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  instance TEXT NOT NULL REFERENCES instance (key),
  agent TEXT NOT NULL,
  s5 INTEGER,                          -- of the new plan, NULL for a stub
  thought TEXT NOT NULL DEFAULT '',
  stub INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX replan_instance ON replan (instance, agent);
CREATE INDEX replan_agent ON replan (agent);

CREATE TABLE replan_body (
  n INTEGER PRIMARY KEY REFERENCES replan (n),
  body BLOB NOT NULL
);

CREATE TABLE trajectory (
  key TEXT PRIMARY KEY,
  instance TEXT NOT NULL REFERENCES instance (key),
  agent TEXT NOT NULL,
  success INTEGER NOT NULL,
  rounds INTEGER NOT NULL,
  body BLOB NOT NULL,
  {_RUN_COLUMNS}
);
CREATE INDEX trajectory_instance ON trajectory (instance, agent);
"""

SCORES = """
CREATE TABLE score_log (
  entry INTEGER PRIMARY KEY,
  event TEXT NOT NULL UNIQUE,          -- given by the client: the same event is stored once
  replan TEXT NOT NULL REFERENCES replan (key),
  dimension TEXT NOT NULL,
  scorer TEXT NOT NULL,                -- human:NAME, judge:MODEL@PROMPT or program
  revision INTEGER NOT NULL CHECK (revision >= 1),
  value REAL CHECK (value IS NULL OR value BETWEEN 0 AND 1),
  note TEXT NOT NULL DEFAULT '',
  at TEXT NOT NULL,                    -- ISO 8601, UTC
  rubric TEXT NOT NULL DEFAULT '',
  action TEXT NOT NULL CHECK (action IN ('score', 'note', 'clear', 'undo', 'import')),
  revealed INTEGER NOT NULL DEFAULT 0, -- 1: made after the reveal
  batch INTEGER,
  seconds REAL,                        -- time spent on the item, idle time left out
  note_given BLOB,                     -- the exact note where it holds lone surrogates
  extra TEXT NOT NULL DEFAULT '',      -- JSON object, '' for none
  UNIQUE (replan, dimension, scorer, revision)
);
CREATE INDEX score_log_scorer ON score_log (scorer, replan);
CREATE INDEX score_log_batch ON score_log (batch, scorer) WHERE batch IS NOT NULL;

CREATE VIEW score_current AS
SELECT l.*,
  CASE WHEN l.scorer LIKE 'human:%' THEN 'human' WHEN l.scorer LIKE 'judge:%' THEN 'judge'
    ELSE 'program' END AS scorer_kind
FROM score_log AS l
WHERE NOT EXISTS (
  SELECT 1 FROM score_log AS later
  WHERE later.replan = l.replan AND later.dimension = l.dimension
    AND later.scorer = l.scorer AND later.revision = l.revision + 1
);

CREATE TABLE gold (                    -- what an adjudicator decided
  entry INTEGER PRIMARY KEY,
  event TEXT NOT NULL UNIQUE,
  replan TEXT NOT NULL REFERENCES replan (key),
  dimension TEXT NOT NULL,
  revision INTEGER NOT NULL CHECK (revision >= 1),
  value REAL CHECK (value IS NULL OR value BETWEEN 0 AND 1),
  adjudicator TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  at TEXT NOT NULL,
  batch INTEGER,
  UNIQUE (replan, dimension, revision)
);

CREATE VIEW gold_current AS
SELECT g.* FROM gold AS g
WHERE NOT EXISTS (
  SELECT 1 FROM gold AS later
  WHERE later.replan = g.replan AND later.dimension = g.dimension
    AND later.revision = g.revision + 1
);

CREATE TABLE replan_summary (          -- follows score_log and gold in the same transaction
  replan TEXT PRIMARY KEY REFERENCES replan (key),
  instance TEXT NOT NULL REFERENCES instance (key),
  level INTEGER NOT NULL,
  source TEXT NOT NULL,
  agent TEXT NOT NULL,
  s5 INTEGER,
  si REAL, dr REAL, es REAL, total REAL,                          -- people, in [0, 1]
  judge_si REAL, judge_dr REAL, judge_es REAL, judge_total REAL,  -- judges, in [0, 1]
  gap REAL,                            -- largest |people - judges| of a sub-dimension
  humans INTEGER NOT NULL DEFAULT 0,   -- people with a current score
  judges INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX replan_summary_instance ON replan_summary (instance);
"""

WORK = """
CREATE TABLE batch (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created TEXT NOT NULL,
  created_by TEXT NOT NULL DEFAULT '',
  dimensions TEXT NOT NULL,            -- JSON list
  annotators_per_item INTEGER NOT NULL DEFAULT 1,
  reveal INTEGER NOT NULL DEFAULT 1,   -- 0 never, 1 after submitting, 2 open from the start
  settings TEXT NOT NULL DEFAULT '{}'  -- JSON object: how the batch was drawn
);

CREATE TABLE batch_item (
  batch INTEGER NOT NULL REFERENCES batch (id),
  replan TEXT NOT NULL REFERENCES replan (key),
  position INTEGER NOT NULL,
  slots INTEGER NOT NULL DEFAULT 1,    -- annotators who score this item
  dimensions TEXT NOT NULL DEFAULT '', -- JSON list, '' for all of the batch
  PRIMARY KEY (batch, replan)
) WITHOUT ROWID;
CREATE UNIQUE INDEX batch_item_position ON batch_item (batch, position);

CREATE TABLE assignment (
  batch INTEGER NOT NULL,
  replan TEXT NOT NULL,
  annotator TEXT NOT NULL,
  slot INTEGER NOT NULL,               -- from 1 to batch_item.slots
  state TEXT NOT NULL CHECK (state IN ('claimed', 'submitted', 'skipped', 'flagged', 'released')),
  claimed_at TEXT NOT NULL,
  touched_at TEXT NOT NULL,
  submitted_at TEXT,
  revealed_at TEXT,
  note TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (batch, replan, annotator),
  FOREIGN KEY (batch, replan) REFERENCES batch_item (batch, replan)
) WITHOUT ROWID;
CREATE UNIQUE INDEX assignment_slot ON assignment (batch, replan, slot) WHERE state <> 'released';
CREATE INDEX assignment_annotator ON assignment (annotator, batch, state);

CREATE TABLE event_log (               -- flags, skips, sample notes, submits, reveals
  entry INTEGER PRIMARY KEY,
  event TEXT NOT NULL UNIQUE,
  at TEXT NOT NULL,
  annotator TEXT NOT NULL,
  batch INTEGER,
  replan TEXT NOT NULL DEFAULT '',
  kind TEXT NOT NULL,
  note TEXT NOT NULL DEFAULT ''
);
CREATE INDEX event_log_item ON event_log (replan, annotator, kind);
CREATE INDEX event_log_batch ON event_log (batch, annotator, at);
"""

APPEND_ONLY = (
    *("score_log", "gold", "event_log", *JUDGING_LOGS),
    *(*TRAINING_TABLES, *SESSION_LOGS, *CASE_TABLES),
)
"""Tables whose rows are never changed or deleted."""

TABLES = (
    *("instance", "instance_body", "instance_error", "replan", "replan_body", "trajectory"),
    *("score_log", "gold", "replan_summary", "batch", "batch_item", "assignment", "event_log"),
    *JUDGING_TABLES,
    *TRAINING_TABLES,
    *SESSION_TABLES,
    *CASE_TABLES,
    *SEARCH_TABLES,
)
"""All tables of this version."""


def _guard(table: str) -> str:
    return "".join(
        f"CREATE TRIGGER IF NOT EXISTS {table}_no_{verb} BEFORE {verb.upper()} ON {table} BEGIN "
        f"SELECT RAISE(ABORT, '{table} is append-only'); END;\n"
        for verb in ("update", "delete")
    )


_GUARDS = "".join(map(_guard, APPEND_ONLY))
SCHEMA = RECORDS + SCORES + WORK + JUDGING + TRAINING + SESSIONS + CASES + _GUARDS + SEARCH
"""The whole schema of this version."""

JUDGING_STEP = JUDGING + "".join(map(_guard, JUDGING_LOGS))
"""What version 4 added; safe to repeat."""

TRAINING_STEP = TRAINING + "".join(map(_guard, TRAINING_TABLES))
"""What version 5 adds to version 4."""

SESSION_STEP = SESSIONS + "".join(map(_guard, SESSION_LOGS))
"""What version 6 adds to version 5."""

CASE_STEP = CASES + "".join(map(_guard, CASE_TABLES))
"""What version 7 adds to version 6."""
