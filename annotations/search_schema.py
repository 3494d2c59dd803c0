"""What browsing searches: one narrow row per answer, and a word index of the long texts.

``search_item`` has a row for every replan, and one for every instance (or run) without a replan;
triggers keep it in step with the tables it is made from. ``instance_text`` and ``replan_text``
are FTS5 word indices that ``search_index`` fills.
"""

from pararecover_core.taxonomy import ErrorType

ERROR_BITS: dict[str, int] = {kind.value: 1 << place for place, kind in enumerate(ErrorType)}
"""Bit of each error type in ``search_item.errors``."""

OTHER_BIT = 1 << len(ERROR_BITS)
"""Bit of any label outside the 14 types."""

_BIT = " ".join(f"WHEN '{name}' THEN {bit}" for name, bit in ERROR_BITS.items())
_FIGURES = (
    *("s5", "si", "dr", "es", "total", "judge_si", "judge_dr", "judge_es", "judge_total"),
    *("gap", "humans", "judges"),
)
_INSTANCE_N = "(SELECT n FROM instance WHERE key = NEW.instance)"
_REPLAN_N = "(SELECT n FROM replan WHERE key = NEW.replan)"
_NEXT = "(SELECT COALESCE(MAX(seq), 0) + 1 FROM search_item)"
_RUN = "FROM trajectory t WHERE t.instance = NEW.instance AND t.agent = NEW.agent"

SEARCH = f"""
CREATE TABLE search_item (
  n INTEGER PRIMARY KEY,
  instance_n INTEGER NOT NULL,
  replan_n INTEGER,                    -- NULL: no answer yet
  level INTEGER NOT NULL,
  source TEXT NOT NULL,
  agent TEXT NOT NULL DEFAULT '',
  errors INTEGER NOT NULL DEFAULT 0,   -- bits of the error types in any round
  rounds INTEGER,                      -- behind the previous plan
  run INTEGER,                         -- rounds of the whole run, NULL where none is known
  round_gt INTEGER,
  seq INTEGER NOT NULL,                -- rises with every change of a row
  {" REAL, ".join(_FIGURES)} REAL
);
CREATE INDEX search_item_instance ON search_item (instance_n);
CREATE INDEX search_item_seq ON search_item (seq);
CREATE UNIQUE INDEX search_item_replan ON search_item (replan_n) WHERE replan_n IS NOT NULL;

CREATE VIRTUAL TABLE instance_text USING fts5 (query, tools, ids, content='',
  tokenize=unicode61);
CREATE VIRTUAL TABLE replan_text USING fts5 (thought, tools, content='',
  prefix='2 3', tokenize=unicode61);

CREATE TRIGGER search_instance_new AFTER INSERT ON instance BEGIN
  INSERT INTO search_item (instance_n, level, source, rounds, round_gt, seq)
  VALUES (NEW.n, NEW.level, NEW.source, NEW.executed_rounds, NEW.round_gt, {_NEXT});
END;
CREATE TRIGGER search_instance_filled AFTER UPDATE ON instance BEGIN
  UPDATE search_item SET level = NEW.level, source = NEW.source, rounds = NEW.executed_rounds,
    round_gt = NEW.round_gt, seq = {_NEXT} WHERE instance_n = NEW.n;
END;
CREATE TRIGGER search_error_new AFTER INSERT ON instance_error BEGIN
  UPDATE search_item SET errors = errors | CASE NEW.error_type {_BIT} ELSE {OTHER_BIT} END,
    seq = {_NEXT} WHERE instance_n = {_INSTANCE_N};
END;
CREATE TRIGGER search_replan_new AFTER INSERT ON replan_summary BEGIN
  UPDATE search_item SET replan_n = {_REPLAN_N}, agent = NEW.agent, s5 = NEW.s5,
    seq = {_NEXT}
  WHERE n = (SELECT n FROM search_item WHERE instance_n = {_INSTANCE_N} AND replan_n IS NULL
    AND agent IN ('', NEW.agent) LIMIT 1);
  INSERT INTO search_item (instance_n, replan_n, level, source, agent, errors, rounds, run,
    round_gt, s5, seq)
  SELECT i.n, {_REPLAN_N}, i.level, i.source, NEW.agent,
    (SELECT COALESCE(MAX(errors), 0) FROM search_item WHERE instance_n = i.n),
    i.executed_rounds, (SELECT t.rounds {_RUN} LIMIT 1), i.round_gt, NEW.s5, {_NEXT}
  FROM instance i WHERE i.key = NEW.instance
    AND NOT EXISTS (SELECT 1 FROM search_item WHERE replan_n = {_REPLAN_N});
END;
CREATE TRIGGER search_replan_scored AFTER UPDATE ON replan_summary BEGIN
  UPDATE search_item SET agent = NEW.agent, {", ".join(f"{f} = NEW.{f}" for f in _FIGURES)},
    seq = {_NEXT} WHERE replan_n = {_REPLAN_N};
END;
CREATE TRIGGER search_run_new AFTER INSERT ON trajectory BEGIN
  UPDATE search_item SET agent = NEW.agent
  WHERE instance_n = {_INSTANCE_N} AND agent = '' AND replan_n IS NULL;
  UPDATE search_item SET run = MAX(COALESCE(run, 0), NEW.rounds), seq = {_NEXT}
  WHERE instance_n = {_INSTANCE_N} AND agent = NEW.agent;
  INSERT INTO search_item (instance_n, level, source, agent, errors, rounds, run, round_gt, seq)
  SELECT i.n, i.level, i.source, NEW.agent,
    (SELECT COALESCE(MAX(errors), 0) FROM search_item WHERE instance_n = i.n),
    i.executed_rounds, NEW.rounds, i.round_gt, {_NEXT}
  FROM instance i WHERE i.key = NEW.instance
    AND NOT EXISTS (SELECT 1 FROM search_item WHERE instance_n = i.n AND agent = NEW.agent);
END;
"""

SEARCH_TABLES = ("search_item", "instance_text", "replan_text")
"""Tables that this version must have."""

_LABELS = (
    f"(SELECT COALESCE(SUM(bit), 0) FROM (SELECT DISTINCT CASE e.error_type {_BIT} "
    f"ELSE {OTHER_BIT} END AS bit FROM instance_error e WHERE e.instance = i.key))"
)
FILL = f"""
INSERT INTO search_item (instance_n, replan_n, level, source, agent, errors, rounds, run,
  round_gt, seq, {", ".join(_FIGURES)})
SELECT i.n, r.n, i.level, i.source, r.agent, {_LABELS}, i.executed_rounds,
  (SELECT MAX(t.rounds) FROM trajectory t WHERE t.instance = i.key AND t.agent = r.agent),
  i.round_gt, 1, {", ".join(f"s.{name}" for name in _FIGURES)}
FROM replan r JOIN instance i ON i.key = r.instance LEFT JOIN replan_summary s ON s.replan = r.key
ORDER BY i.n, r.n;
INSERT INTO search_item (instance_n, level, source, agent, errors, rounds, run, round_gt,
  seq)
SELECT i.n, i.level, i.source, t.agent, {_LABELS}, i.executed_rounds, MAX(t.rounds), i.round_gt, 1
FROM trajectory t JOIN instance i ON i.key = t.instance
WHERE NOT EXISTS (SELECT 1 FROM search_item x WHERE x.instance_n = i.n AND x.agent = t.agent)
GROUP BY i.n, t.agent;
INSERT INTO search_item (instance_n, level, source, errors, rounds, round_gt, seq)
SELECT i.n, i.level, i.source, {_LABELS}, i.executed_rounds, i.round_gt, 1 FROM instance i
WHERE NOT EXISTS (SELECT 1 FROM search_item x WHERE x.instance_n = i.n);
"""
"""Makes the rows of ``search_item`` anew from all records."""

DROP = """
DROP TRIGGER IF EXISTS search_instance_new;
DROP TRIGGER IF EXISTS search_instance_filled;
DROP TRIGGER IF EXISTS search_error_new;
DROP TRIGGER IF EXISTS search_replan_new;
DROP TRIGGER IF EXISTS search_replan_scored;
DROP TRIGGER IF EXISTS search_run_new;
DROP TABLE IF EXISTS search_item;
DROP TABLE IF EXISTS instance_text;
DROP TABLE IF EXISTS replan_text;
"""
"""Takes all of it away; nothing is lost, since records and scores stand elsewhere."""
