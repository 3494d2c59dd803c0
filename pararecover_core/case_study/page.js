"use strict";
(() => {
  const clear = (plan) => {
    for (const one of plan.querySelectorAll(".on,.hit")) one.classList.remove("on", "hit");
    const pick = plan.querySelector(".pick");
    pick.hidden = true;
    pick.textContent = "";
  };
  const choose = (plan, node) => {
    const again = node.classList.contains("on");
    clear(plan);
    if (again) return;
    node.classList.add("on");
    const edges = [...plan.querySelectorAll(".e")];
    const reached = new Set();
    const waiting = [node.dataset.key];
    while (waiting.length) {
      const from = waiting.pop();
      for (const edge of edges) {
        if (edge.dataset.from !== from) continue;
        edge.classList.add("hit");
        if (!reached.has(edge.dataset.to)) {
          reached.add(edge.dataset.to);
          waiting.push(edge.dataset.to);
        }
      }
    }
    const names = [];
    for (const other of plan.querySelectorAll(".n")) {
      if (other === node || !reached.has(other.dataset.key)) continue;
      other.classList.add("hit");
      names.push(other.dataset.id);
    }
    const pick = plan.querySelector(".pick");
    const words = names.length ? `reaches ${names.join(", ")}` : "reaches no other node";
    pick.textContent = `${node.dataset.tip}\n${words}`;
    pick.hidden = false;
  };
  for (const plan of document.querySelectorAll(".plan, .full")) {
    for (const node of plan.querySelectorAll(".n")) {
      node.addEventListener("click", () => choose(plan, node));
      node.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose(plan, node);
      });
    }
  }
  for (const button of document.querySelectorAll(".more")) {
    button.addEventListener("click", () => button.nextElementSibling.showModal());
  }
  window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
})();
