/* The Guidelines page. Data: annotations/guide.py; uses plan.js and annotate_dom.js. Text goes in as text. */

function guideTop(data, parts) {
  const jump = (label, part) => make("button", { type: "button", class: "btn", text: label, onclick: () => part.scrollIntoView({ behavior: "smooth", block: "start" }) });
  return make("nav", { class: "card top", "aria-label": "Sections" }, make("b", { text: `Rubric ${data.version}` }),
    make("span", { class: "q", text: "people and judges read the same words" }), make("span", { class: "gap" }),
    ...parts.map(([label, part]) => jump(label, part)));
}

function guideDimension(one, chosen, choose) {
  const scored = one.judged ? null : make("span", { class: "tag", text: "computed" });
  const id = make("button", { type: "button", class: "id", text: one.id, title: `Link to ${one.id}`, "aria-pressed": String(chosen), onclick: () => choose(one.id) });
  return make("tr", { class: chosen ? "cur" : "", "data-d": one.id },
    make("th", { scope: "row" }, make("span", { class: "row" }, id, make("span", { class: "nm", text: one.name }), scored), make("span", { class: "q ask", text: one.question })),
    ...one.anchors.map(([level, text]) => make("td", { "data-level": level }, text || make("span", { class: "q", text: "–" }))));
}

function guideGroup(group, chosen, choose) {
  const head = make("div", { class: "head" }, make("h2", { text: `${group.id} ${group.name}` }), make("span", { class: "q", text: group.question }),
    make("span", { class: "gap" }), make("span", { class: "q s12", text: `${group.code}: mean of the five, times 100` }));
  const heads = ["Sub-dimension", "1", "0.5", "0"].map((text) => make("th", { text, scope: "col" }));
  const rows = group.dimensions.map((one) => guideDimension(one, one.id === chosen, choose));
  return make("section", { class: "card" }, head, make("div", { class: "scroll" }, make("table", { class: "rub" }, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows))));
}

function guideCases(data) {
  const head = make("div", { class: "head" }, make("h2", { text: "Edge cases" }));
  return make("section", { class: "card" }, head, make("ul", { class: "pad" }, ...data.edge_cases.map((text) => make("li", { text }))));
}

function guideKeys(data) {
  const head = make("div", { class: "head" }, make("h2", { text: "Keys on the Annotate page" }), make("span", { class: "q s12", text: "keys rest while a text field has the focus" }));
  const caps = (text) => text.split(" ").map((one) => (one === "or" ? " or " : key(one)));
  const rows = data.keys.flatMap(([keys, what]) => [make("dt", {}, ...caps(keys)), make("dd", { text: what })]);
  return make("section", { class: "card" }, head, make("dl", { class: "keys pad" }, ...rows));
}

function guidePlan(title, picture, plans) {
  const area = make("div", { class: "area" });
  if (picture) plans.push([area, picture, title]);
  return make("figure", { class: "plan" }, make("figcaption", { class: "q s12", text: title }), area);
}

function guideExample(example, number, plans, data) {
  const short = new Map(data.groups.flatMap((group) => group.dimensions.map((one) => [one.id, one.short])));
  const head = make("div", { class: "head" }, make("h2", { text: `Example ${number}: ${example.title}` }), make("span", { class: "q s12", text: `LEVEL-${example.level}` }));
  const line = (label, text) => text ? make("p", {}, make("b", { text: `${label} ` }), text) : null;
  const drawn = example.before ? make("div", { class: "plans" }, guidePlan("Before: the plan with the fault", example.before, plans), guidePlan("After: the agent's new plan, and what changed", example.after, plans)) : null;
  const scores = example.scores.map(([dimension, score, reason]) => make("tr", {},
    make("th", { scope: "row" }, make("b", { text: dimension }), ` ${short.get(dimension) || ""}`), make("td", { class: "c" }, make("b", { text: score })), make("td", { text: reason })));
  const table = make("table", { class: "ex" }, make("thead", {}, make("tr", {}, ...["Sub-dimension", "Score", "Why"].map((text) => make("th", { text, scope: "col" })))), make("tbody", {}, ...scores));
  return make("section", { class: "card" }, head, make("div", { class: "pad text" }, line("Query.", example.query), line("What is wrong.", example.fault), line("The thought.", example.thought), line("What the agent did.", example.answer)), drawn, make("div", { class: "scroll" }, table));
}

function makeGuide(host, data, choose) {
  const plans = [];
  const groups = data.groups.map((group) => [`${group.id} ${group.name}`, guideGroup(group, data.chosen, choose)]);
  const cases = guideCases(data);
  const keys = guideKeys(data);
  const examples = data.examples.map((example, place) => guideExample(example, place + 1, plans, data));
  const parts = [...groups, ["Edge cases", cases], ["Keys", keys], ["Examples", examples[0]]].filter(([, part]) => part);
  const root = make("div", { class: "guide" }, guideTop(data, parts), ...groups.map(([, part]) => part), make("div", { class: "two" }, cases, keys), ...examples);
  host.append(root);
  const mounted = plans.map(([area, picture, title]) => {
    const plan = mountPlan(area, picture, { ariaLabel: title });
    const fit = () => { area.style.height = `${Math.min(420, Math.max(150, Math.ceil(plan.height(area.clientWidth))))}px`; };
    if (plan.height) fit();
    return plan;
  });
  return { root, destroy: () => { for (const plan of mounted) plan.destroy(); root.remove(); } };
}

export default function guide({ data, parentElement, setStateValue }) {
  const mark = (id) => {
    for (const row of parentElement.querySelectorAll("tr[data-d]")) {
      row.classList.toggle("cur", row.dataset.d === id);
      row.querySelector(".id").setAttribute("aria-pressed", String(row.dataset.d === id));
    }
  };
  const choose = (id) => { mark(id); setStateValue("chosen", id); };
  if (!parentElement.pararecoverGuide) {
    parentElement.pararecoverGuide = makeGuide(parentElement, data, choose);
    const row = parentElement.querySelector("tr.cur");
    if (row) setTimeout(() => row.scrollIntoView({ block: "center" }), 50);
  } else mark(data.chosen);
  return () => {
    if (parentElement.pararecoverGuide) parentElement.pararecoverGuide.destroy();
    parentElement.pararecoverGuide = null;
  };
}
