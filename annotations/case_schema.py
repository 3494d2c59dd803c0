"""The table of saved case studies: every save is a new version, none is changed or deleted."""

CASES = """
CREATE TABLE IF NOT EXISTS case_study (
  entry INTEGER PRIMARY KEY,
  event TEXT NOT NULL UNIQUE,          -- given by the client: the same event is stored once
  name TEXT NOT NULL,                  -- what its author calls it; versions share it
  version INTEGER NOT NULL CHECK (version >= 1),
  item TEXT NOT NULL,                  -- key of a replan, an instance or a trajectory
  other TEXT NOT NULL DEFAULT '',      -- the second one of a comparison
  spec TEXT NOT NULL,                  -- JSON of case_study.Spec
  author TEXT NOT NULL DEFAULT '',
  at TEXT NOT NULL,                    -- ISO 8601, UTC
  gone INTEGER NOT NULL DEFAULT 0,     -- 1: taken out of the gallery; earlier versions stay
  UNIQUE (name, version)
);
"""

CASE_TABLES = ("case_study",)
"""Its rows are never changed or deleted."""
