"""The table of what people decided about training examples ("manual cleaning")."""

TRAINING = """
CREATE TABLE IF NOT EXISTS training_decision (
  entry INTEGER PRIMARY KEY,
  event TEXT NOT NULL UNIQUE,          -- given by the client: the same event is stored once
  kind TEXT NOT NULL CHECK (kind IN ('sft', 'dpo')),
  example TEXT NOT NULL,               -- key of the replan; of a pair, both with > between them
  keep INTEGER NOT NULL,               -- 0: taken out; the newest of an example counts
  reason TEXT NOT NULL DEFAULT '',
  author TEXT NOT NULL DEFAULT '',
  at TEXT NOT NULL                     -- ISO 8601, UTC
);
CREATE INDEX IF NOT EXISTS training_decision_example ON training_decision (kind, example);
"""

TRAINING_TABLES = ("training_decision",)
"""Its rows are never changed or deleted."""
