"""Tables of judges: prompts, runs, what every call gave, and batches that wait at an endpoint."""

JUDGING = """
CREATE TABLE IF NOT EXISTS prompt (    -- versions made here; built-in ones come with the package
  entry INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  version INTEGER NOT NULL CHECK (version >= 1),
  parent INTEGER NOT NULL DEFAULT 0,   -- version it was made from, 0 for none
  dimensions TEXT NOT NULL,            -- JSON list
  text TEXT NOT NULL,
  note TEXT NOT NULL DEFAULT '',
  author TEXT NOT NULL DEFAULT '',
  at TEXT NOT NULL,
  UNIQUE (id, version)
);

CREATE TABLE IF NOT EXISTS judge_run (
  id INTEGER PRIMARY KEY,
  scorer TEXT NOT NULL,                -- judge:MODEL@PROMPT
  base_url TEXT NOT NULL DEFAULT '',
  dimensions TEXT NOT NULL,            -- JSON list
  calls INTEGER NOT NULL,              -- to make when it began
  settings TEXT NOT NULL DEFAULT '{}', -- JSON object: what was chosen, and of which replans
  started_by TEXT NOT NULL DEFAULT '',
  started TEXT NOT NULL,
  ended TEXT,                          -- NULL while it runs, and after it was killed
  outcome TEXT NOT NULL DEFAULT '',    -- done, cancelled, stopped or failed
  message TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS judge_run_scorer ON judge_run (scorer);

CREATE TABLE IF NOT EXISTS judgement ( -- one row a call; scores are in score_log
  entry INTEGER PRIMARY KEY,
  run INTEGER NOT NULL REFERENCES judge_run (id),
  replan TEXT NOT NULL REFERENCES replan (key),
  scorer TEXT NOT NULL,
  prompt TEXT NOT NULL DEFAULT '',
  dimensions TEXT NOT NULL,            -- JSON list of what was asked
  status TEXT NOT NULL,                -- ok, or what became of the call
  error TEXT NOT NULL DEFAULT '',
  raw BLOB,                            -- the whole reply, zlib
  prompt_tokens INTEGER NOT NULL DEFAULT 0,
  completion_tokens INTEGER NOT NULL DEFAULT 0,
  cost REAL,                           -- US dollars, NULL where the price is unknown
  seconds REAL NOT NULL DEFAULT 0,
  cached INTEGER NOT NULL DEFAULT 0,   -- 1: kept from before, nothing was paid
  at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS judgement_item ON judgement (scorer, replan, prompt, status);
CREATE INDEX IF NOT EXISTS judgement_run ON judgement (run, status);

CREATE TABLE IF NOT EXISTS judge_batch ( -- questions handed in at /v1/batches
  id TEXT PRIMARY KEY,                 -- given by the endpoint
  scorer TEXT NOT NULL,
  base_url TEXT NOT NULL,
  run INTEGER NOT NULL REFERENCES judge_run (id),
  tasks TEXT NOT NULL,                 -- JSON: custom id to replan, prompt, sub-dimensions, attempt
  submitted TEXT NOT NULL,
  collected TEXT                       -- NULL while answers are waited for
);
"""

JUDGING_TABLES = ("prompt", "judge_run", "judgement", "judge_batch")
JUDGING_LOGS = ("prompt", "judgement")
"""Those whose rows are never changed or deleted."""
