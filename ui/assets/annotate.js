/* The Annotate workbench: one component that holds the item, the keys and what waits to be stored.
 *
 * Data comes from two places: the component's own data (who, which database, the rubric) and the
 * feed, a tiny second component that carries acknowledgements and items, so that a score sends a
 * few hundred bytes and not the whole page. Python: ui/annotate_panel.py.
 */

const RETRY = 2000; // ms between two tries while something waits
const LATE = 2500; // ms without an answer after which the page says so
const IDLE = 60; // seconds without a hand on mouse or keys that still count as work
const HANDS = ["keydown", "pointerdown", "pointermove", "wheel"]; // signs of somebody at work
const KEEPS = "A submitted item keeps a score everywhere; give it another value instead.";
const KEPT = 12; // items that stay in the browser

function annotateFeed() {
  if (!window.pararecoverFeed)
    window.pararecoverFeed = { data: null, listeners: new Set(), contents: new Map() };
  return window.pararecoverFeed;
}

function makeBench(host, config, send) {
  const feed = annotateFeed();
  const outbox = makeOutbox(config.store, config.annotator);
  const at = {
    item: null, // the replan on screen
    token: 0, // newest move of this page: grows with time, also over reloads
    move: { item: null, step: 0 },
    answered: 0, // newest move that the server answered
    sent: 0,
    sentAt: 0,
    askedAt: 0, // since when something waits for an answer
    late: false,
    lackedAt: -Infinity,
    standings: new Map(),
    troubles: new Map(),
    seconds: new Map(),
    lastHand: performance.now(),
    notice: "",
    savedAt: "",
    full: null,
    progress: null,
    feed: {},
  };

  /* ---- frame ---- */

  const reading = makeReading({ full: askFull });
  const scoring = makeScoring(config.rubric, {
    score: (dimension, value) => {
      scoring.focus(dimension);
      score(value);
    },
    note: keepNote,
    focus: (dimension) => scoring.focus(dimension),
    undo,
    skip: () => leave("skip"),
    flag: () => leave("flag"),
    submit,
    reveal,
    go,
    reload: (dimension) => {
      troubles().delete(dimension);
      draw();
    },
  });
  const full = makeFullText(() => full.close());
  const bar = makeBar({ go, help: toggleHelp, ways: config.ways });
  const notice = make("div", { class: "notice", role: "status", hidden: true });
  const says = make("div", { class: "unseen", "aria-live": "polite" });
  const empty = make("div", { class: "card empty", hidden: true });
  const help = makeHelp();
  const cols = make("div", { class: "cols" }, reading.root, scoring.root);
  const bench = make(
    "div",
    { class: "bench" },
    bar.root,
    notice,
    cols,
    empty,
    help,
    full.root,
    says,
  );
  host.append(bench);

  /* ---- what is on screen ---- */

  function standing() {
    return at.standings.get(at.item) || null;
  }
  function content() {
    return feed.contents.get(at.item) || null;
  }
  function troubles() {
    if (!at.troubles.has(at.item)) at.troubles.set(at.item, new Map());
    return at.troubles.get(at.item);
  }
  function view() {
    const found = standing();
    if (!found) return null;
    return {
      ...laidOver(found, outbox.of(at.item)),
      item: at.item,
      troubles: Object.fromEntries(troubles()),
    };
  }

  function draw() {
    const now = view();
    const what = content();
    const ready = Boolean(now && what);
    cols.hidden = Boolean(at.feed.empty) && !ready;
    empty.hidden = !at.feed.empty || ready;
    bench.classList.toggle("loading", !ready && empty.hidden);
    bar.draw({
      view: ready ? now : null,
      late: at.late,
      waits: outbox.size(),
      keeps: outbox.keeps(),
      savedAt: at.savedAt,
      empty: Boolean(at.feed.empty),
    });
    if (ready) {
      scoring.show(now, what, at.late);
      tick();
    }
  }

  function drawItem() {
    const what = content();
    if (what && standing()) {
      reading.show(what, standing().revealed);
      const now = view();
      scoring.show(now, what, at.late);
      const asked = scoring.asked();
      const open = asked.find((id) => !now.rows[id] || now.rows[id].value === null);
      scoring.focus(open || asked[0] || "S1");
    }
    draw();
  }

  function tell(text) {
    at.notice = text;
    notice.hidden = !text;
    notice.replaceChildren(
      text,
      " ",
      ...(text ? [button("Close", "", () => tell(""), { cls: "q" })] : []),
    );
  }

  function say(text) {
    says.textContent = text;
  }

  /* ---- acts ---- */

  function act(fields) {
    const found = standing();
    const last = fields.dimension ? outbox.last(at.item, fields.dimension) : null;
    const known = fields.dimension && found.scores[fields.dimension];
    outbox.add({
      item: at.item,
      batch: found.batch,
      base: known ? known.revision : 0,
      after: last ? last.event : "",
      seconds: Math.round(at.seconds.get(at.item) || 0),
      at: new Date().toISOString(),
      ...fields,
    });
    flush();
    draw();
  }

  function score(value) {
    const dimension = scoring.focused();
    const found = standing();
    if (!found || !found.can_score || !scoring.asked().includes(dimension)) return;
    if (troubles().has(dimension)) return say(troubles().get(dimension));
    act({ kind: "score", dimension, value });
    say(`${dimension} scored ${value}`);
    const asked = scoring.asked();
    const next = asked[asked.indexOf(dimension) + 1];
    const rows = view().rows;
    const open = asked.find((id) => !rows[id] || rows[id].value === null);
    scoring.focus(next || open || dimension);
  }

  function clear() {
    const dimension = scoring.focused();
    const row = view() && view().rows[dimension];
    if (!row || row.value === null || !standing().can_score) return;
    if (view().state === "submitted") return tell(KEEPS);
    act({ kind: "clear", dimension, value: null });
    say(`${dimension} cleared`);
  }

  function undo() {
    const now = view();
    if (!now || !now.can_score || !now.undo.length) return say("Nothing to undo");
    const [dimension, value, note] = now.undo[now.undo.length - 1];
    if (now.state === "submitted" && value === null) return tell(KEEPS);
    scoring.focus(dimension);
    act({ kind: "undo", dimension, value, note });
    return say(`Undone: ${dimension} ${written(value)}`);
  }

  function keepNote(item, dimension, note) {
    if (item !== at.item || !standing() || standing().batch === null) return;
    act(dimension ? { kind: "note", dimension, note } : { kind: "note", note });
    say(dimension ? `Note on ${dimension} kept` : "Note on the sample kept");
  }

  function leave(kind) {
    const now = view();
    if (!now || !now.can_score || now.state === "submitted") return;
    act({ kind });
    say(kind === "skip" ? "Skipped" : "Flagged");
    onward();
  }

  function submit() {
    const now = view();
    if (!now) return;
    if (now.state === "submitted") return go(1);
    if (!now.can_score) return;
    const missing = scoring.asked().filter((id) => !scoring.scored().includes(id));
    if (missing.length) {
      scoring.focus(missing[0]);
      return tell(
        `${missing.length === 1 ? "1 sub-dimension has" : `${missing.length} sub-dimensions have`} no score yet: ${missing.join(", ")}.`,
      );
    }
    if (at.late) return tell("No connection: submit again when it is back. Your scores are kept on this page.");
    if (troubles().size) return tell("Reload what was scored in another tab, then submit.");
    act({ kind: "submit" }); // behind its scores: acts are carried out in order
    say("Submitted");
    return onward();
  }

  function reveal() {
    const found = standing();
    if (found && found.shown.can_reveal) act({ kind: "reveal" });
  }

  /* ---- moving ---- */

  function open(item) {
    if (!item || item === at.item) return;
    at.item = item;
    at.lastHand = performance.now();
    tell("");
    drawItem();
  }

  function move(item, step) {
    ask({ item, step });
  }

  function ask(wish) {
    at.token = Math.max(at.token + 1, Date.now());
    at.move = wish;
    flush();
  }

  function ready(item) {
    return Boolean(item && feed.contents.has(item) && at.standings.has(item));
  }

  function onward() {
    const next = at.feed.from === at.item ? at.feed.onward : null;
    const from = at.item;
    if (ready(next)) {
      open(next);
      move(next, 0);
    } else move(from, 2);
  }

  function go(step) {
    if (!at.item) return ask({ item: null, step: 0, ask: step < 0 ? "look_back" : "" });
    const near =
      at.feed.from === at.item ? (step > 0 ? at.feed.following : at.feed.previous) : null;
    const from = at.item;
    if (ready(near)) {
      open(near);
      return move(near, 0);
    }
    return move(from, step);
  }

  /* ---- to and from the server ---- */

  function have() {
    return Array.from(feed.contents.keys()).filter((item) => at.standings.has(item));
  }

  function pending() {
    const lacks = !at.feed.empty && (!at.item || !ready(at.item));
    return outbox.size() > 0 || at.token > at.answered || lacks || at.full !== null;
  }

  function flush() {
    at.sent += 1;
    at.sentAt = performance.now();
    if (!at.askedAt) at.askedAt = at.sentAt;
    const { store, annotator } = config; // whose acts these are, whoever is there by now
    const wish = { token: at.token, ...at.move, have: have(), full: at.full };
    send({ n: at.sent, store, annotator, ...wish, acts: outbox.all() });
  }

  function receive(data) {
    if (!data || data.store !== config.store || data.annotator !== config.annotator) return;
    at.feed = data;
    if ("progress" in data) at.progress = data.progress;
    at.askedAt = 0;
    for (const [item, what] of Object.entries(data.contents || {})) {
      feed.contents.delete(item);
      feed.contents.set(item, what);
    }
    for (const [item, found] of Object.entries(data.standings || {})) at.standings.set(item, found);
    for (const item of Array.from(feed.contents.keys()).slice(0, -KEPT)) {
      if (item !== at.item) feed.contents.delete(item);
    }
    const touched = settle(data.acks || {});
    if (data.token >= at.token) {
      at.answered = data.token;
      if (data.empty) at.item = null;
      else if (data.item !== at.item && ready(data.item)) open(data.item);
      if (data.notice) tell(data.notice);
    }
    if (data.full && at.full && data.full.field === at.full.field) {
      full.show(data.full.text);
      at.full = null;
    }
    if (at.late && !outbox.size()) at.late = false;
    if (data.empty) {
      const wish = (name) => ask({ item: null, step: 0, ask: name });
      empty.replaceChildren(...emptyWords(data.empty, wish));
    }
    if (touched.reveal) drawItem();
    draw();
    if (data.item && !ready(data.item) && performance.now() - at.lackedAt > 1000) {
      at.lackedAt = performance.now(); // the page holds less than the server thought
      flush();
    }
  }

  function settle(acks) {
    const touched = { reveal: false };
    for (const [event, ack] of Object.entries(acks)) {
      if (ack.retry) {
        tell(ack.refused);
        continue;
      }
      const done = outbox.remove(event);
      if (!done) continue;
      const found = at.standings.get(done.item);
      if (ack.refused) refuse(done, ack, found);
      else if (done.dimension && found) keep(done, ack, found);
      else if (done.kind === "reveal") touched.reveal = done.item === at.item;
      if (!ack.refused) at.savedAt = timeOf(ack.at) || at.savedAt;
      if (done.item === at.item && done.dimension && !ack.refused)
        say(
          `${done.dimension} ${done.kind === "score" ? `scored ${done.value}` : done.kind}, saved`,
        );
    }
    return touched;
  }

  function keep(done, ack, found) {
    const before = found.scores[done.dimension];
    if (before && before.revision >= ack.revision) return; // the standing that came with it is newer
    if (done.kind === "undo") {
      const entry = found.undo.findLastIndex((one) => one[0] === done.dimension);
      if (entry >= 0) found.undo.splice(entry, 1);
    } else
      found.undo.push([done.dimension, before ? before.value : null, before ? before.note : ""]);
    found.scores[done.dimension] = {
      value: ack.value,
      note: ack.note,
      revision: ack.revision,
      at: ack.at,
    };
  }

  function refuse(done, ack, found) {
    if (done.dimension && found && ack.score) found.scores[done.dimension] = ack.score;
    if (done.dimension && ack.stale) {
      if (!at.troubles.has(done.item)) at.troubles.set(done.item, new Map());
      at.troubles.get(done.item).set(done.dimension, ack.refused);
    } else
      tell(
        done.item === at.item || !found ? ack.refused : `Item ${found.position}: ${ack.refused}`,
      );
    if (done.item === at.item) say(ack.refused);
  }

  function askFull(field) {
    full.wait();
    at.full = { item: at.item, field };
    flush();
  }

  /* ---- keys, time ---- */

  function toggleHelp() {
    help.hidden = !help.hidden;
  }

  const KEYS = {
    1: () => score(1),
    5: () => score(0.5),
    0: () => score(0),
    Backspace: clear,
    Delete: clear,
    ArrowUp: () => step(-1),
    ArrowDown: () => step(1),
    ArrowLeft: () => go(-1),
    ArrowRight: () => go(1),
    "[": () => go(-1),
    "]": () => go(1),
    u: undo,
    k: () => leave("skip"),
    f: () => leave("flag"),
    n: (event) => scoring.writeNote(event.shiftKey),
    q: reading.toggleQuery,
    s: flush,
    Enter: submit,
    Escape: () => reading.select(null),
    "?": toggleHelp,
  };

  function step(by) {
    const asked = scoring.asked();
    const now = asked.indexOf(scoring.focused());
    scoring.focus(asked[Math.min(Math.max(now + by, 0), asked.length - 1)] || asked[0]);
  }

  const onKey = keyHandler(bench, KEYS, {
    open: () => full.open() || !help.hidden,
    close: () => {
      full.close();
      help.hidden = true;
    },
    passes: (name) => name === "?" && !full.open(),
  });

  function hand() {
    const now = performance.now();
    const gap = (now - at.lastHand) / 1000;
    if (at.item && gap < IDLE) at.seconds.set(at.item, (at.seconds.get(at.item) || 0) + gap);
    at.lastHand = now;
  }

  function tick() {
    if (!at.item) return;
    const since = (performance.now() - at.lastHand) / 1000;
    scoring.showProgress(at.progress, (at.seconds.get(at.item) || 0) + (since < IDLE ? since : 0));
  }

  function watch() {
    const now = performance.now();
    tick();
    if (!bench.isConnected || !pending()) return;
    const late = (at.askedAt && now - at.askedAt > LATE) || !navigator.onLine;
    if (late && !at.late && outbox.size()) {
      at.late = true;
      draw();
    }
    if (now - at.sentAt > RETRY) flush();
  }

  function size() {
    const top = bench.getBoundingClientRect().top + (window.scrollY || 0);
    const room = Math.max(600, window.innerHeight - top - 8);
    bench.style.setProperty("--bench", `${room}px`);
    reading.fit(room);
  }

  const timer = setInterval(watch, 500);
  const sizer = new ResizeObserver(size);
  sizer.observe(document.documentElement);
  document.addEventListener("keydown", onKey);
  for (const name of HANDS) document.addEventListener(name, hand, { passive: true });
  window.addEventListener("resize", size);
  window.addEventListener("online", flush);
  feed.listeners.add(receive);
  size();
  draw();
  receive(feed.data);
  if (outbox.size()) flush();

  return {
    use: (next) => {
      send = next;
    },
    destroy: () => {
      clearInterval(timer);
      sizer.disconnect();
      document.removeEventListener("keydown", onKey);
      for (const name of HANDS) document.removeEventListener(name, hand);
      window.removeEventListener("resize", size);
      window.removeEventListener("online", flush);
      feed.listeners.delete(receive);
      reading.destroy();
      bench.remove();
    },
  };
}

export default function annotate(component) {
  const { data, parentElement, setStateValue } = component;
  const send = (value) => setStateValue("outbox", value);
  const who = `${data.store}/${data.annotator}`;
  const mounted = parentElement.pararecoverBench;
  if (mounted && mounted.who === who) mounted.bench.use(send);
  else {
    if (mounted) mounted.bench.destroy();
    parentElement.pararecoverBench = { who, bench: makeBench(parentElement, data, send) };
  }
  return () => {
    if (parentElement.pararecoverBench) parentElement.pararecoverBench.bench.destroy();
    parentElement.pararecoverBench = null;
  };
}
