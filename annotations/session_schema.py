"""Tables of calibration sessions: sample, split, human scores taken in, and every round."""

SESSIONS = """
CREATE TABLE IF NOT EXISTS session (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created TEXT NOT NULL,
  created_by TEXT NOT NULL DEFAULT '',
  batch INTEGER NOT NULL REFERENCES batch (id),  -- where people score its sample
  settings TEXT NOT NULL DEFAULT '{}'            -- JSON object: seed, share held out
);

CREATE TABLE IF NOT EXISTS session_item (
  session INTEGER NOT NULL REFERENCES session (id),
  replan TEXT NOT NULL REFERENCES replan (key),
  side TEXT NOT NULL CHECK (side IN ('dev', 'held-out')),
  task TEXT NOT NULL,                  -- what keeps together: one query, one side
  dimensions TEXT NOT NULL,            -- JSON list
  PRIMARY KEY (session, replan)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS session_round ( -- human scores, runs, looks, tries, notes: the history
  entry INTEGER PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES session (id),
  kind TEXT NOT NULL CHECK (kind IN ('scores', 'run', 'look', 'try', 'note')),
  at TEXT NOT NULL,
  author TEXT NOT NULL DEFAULT '',
  note TEXT NOT NULL DEFAULT '',
  data TEXT NOT NULL DEFAULT '{}'      -- JSON object
);
CREATE INDEX IF NOT EXISTS session_round_session ON session_round (session, kind);

CREATE TABLE IF NOT EXISTS session_score ( -- people's scores as a round took them in
  round INTEGER NOT NULL REFERENCES session_round (entry),
  replan TEXT NOT NULL,
  dimension TEXT NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (round, replan, dimension)
) WITHOUT ROWID;
"""

SESSION_TABLES = ("session", "session_item", "session_round", "session_score")
SESSION_LOGS = ("session_item", "session_round", "session_score")
"""Those whose rows are never changed or deleted: the split stays, and every look."""
