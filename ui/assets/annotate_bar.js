/* The item bar: which item, what is hidden, what is saved, the way to the next one. */

const BLIND = "Agent, judge, error tags and others' scores are hidden until you submit and reveal";

function makeBar(hooks) {
  const root = make("div", { class: "bar1" });

  function tag(text, cls, title, sign) {
    return make("span", { class: `tag ${cls || ""}`, title }, sign ? icon(sign) : null, text);
  }

  function where(view) {
    const parts = [
      view.total ? `of ${view.total}` : "",
      view.batch_name,
      view.level ? `level ${view.level}` : "",
      view.round ? `round ${view.round}` : "",
    ];
    return parts.filter(Boolean).join(" · ");
  }

  function shownOf(view) {
    if (view.shown.blind) return [tag("Blind", "blind", BLIND, "blind")];
    const since = view.revealed_at ? `Revealed ${timeOf(view.revealed_at).slice(0, 5)}` : "Open";
    const found = view.revealed || { agent: "", tags: [], reason: "" };
    return [
      tag(since, "open", null, "eye"),
      tag(found.agent || "agent unknown", "", "Agent"),
      ...found.tags.map((label) => tag(label, "fail", `${label}: ${found.reason || "error tag"}`)),
    ];
  }

  function stateOf(view) {
    const others = view.slots - 1;
    const words = { submitted: "Submitted", skipped: "Skipped before" }[view.state];
    return [
      others > 0 ? tag(`You and ${others} other${others > 1 ? "s" : ""} score this`, "opt") : null,
      words ? tag(words) : null,
      view.state === "flagged" ? tag("Flagged", "", null, "flag") : null,
      view.can_score ? null : tag(view.why || "To look at only"),
    ];
  }

  function titleOf({ view, late, waits, empty }) {
    const name = (text) => make("b", { class: "id", text });
    if (late) {
      const scores = waits === 1 ? "1 score waits" : `${waits} scores wait`;
      return [
        name(`No connection, ${scores} on this page`),
        make("span", { text: "Keys keep working; Submit waits." }),
      ];
    }
    if (!view) return [name(empty ? "Annotate" : "Loading")];
    const place = make("span", { class: "quiet", text: where(view) });
    return [name(`Item ${view.position}`), place, ...shownOf(view), ...stateOf(view)];
  }

  function savedOf({ waits, keeps, savedAt }) {
    if (waits) {
      const words = keeps ? "saving" : "saving; this browser would lose it on reload";
      return [
        make("span", { class: "ring", "aria-hidden": "true" }),
        make("span", { text: words }),
      ];
    }
    return savedAt ? [icon("tick"), make("span", { text: `All saved ${savedAt}` })] : [];
  }

  /* hooks.ways: [words, view of the page] of each sub-page that the person may open */
  function ways() {
    return hooks.ways.map(([text, name]) =>
      make("a", { class: "btn q", href: `annotate?view=${name}`, target: "_self", text }),
    );
  }

  /* now: view (null while loading), late, waits (how many), keeps, savedAt, empty */
  function draw(now) {
    const prior = button("Previous", "", () => hooks.go(-1), { aria: "Previous item, [" });
    prior.prepend(icon("left"));
    prior.append(key("["));
    const next = button("Next", "", () => hooks.go(1), { aria: "Next item, ]" });
    next.append(key("]"));
    root.classList.toggle("lost", now.late);
    root.replaceChildren(
      make("div", { class: "title" }, ...titleOf(now)),
      make("span", { class: "saved" }, ...savedOf(now)),
      ...(now.late ? [] : ways()),
      button("keys", "?", hooks.help, { cls: "q", aria: "All keys" }),
      prior,
      next,
    );
  }

  return { root, draw };
}
