"""A drawing of a plan for any page, as a Streamlit component of its own."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pararecover_core.draw import Picture
from ui.shell import asset

_plan = st.components.v2.component(
    "pararecover_plan",
    css="\n".join(map(asset, ("tokens.css", "plan.css"))),
    js=asset("plan_ink.js")
    + asset("plan.js")
    + """
export default function ({ data, parentElement, setStateValue }) {
  const chosen = (id) => {
    const { plan } = parentElement.pararecoverPlan;
    plan.select(id);
    plan.impact(id === null ? [] : plan.reach(id), id);
    if (data.asks) setStateValue("node", id);
  };
  let box = parentElement.querySelector(".plan-box");
  if (!box) {
    box = document.createElement("div");
    box.className = "plan-box";
    parentElement.append(box);
  }
  box.style.height = `${data.height}px`;
  const text = JSON.stringify(data.picture);
  const known = parentElement.pararecoverPlan;
  if (!known) {
    const plan = mountPlan(box, data.picture, { onSelect: chosen });
    parentElement.pararecoverPlan = { plan, text };
  } else if (text !== known.text) {
    known.text = text;
    known.plan.update(data.picture);
  }
  return () => {
    if (parentElement.pararecoverPlan) parentElement.pararecoverPlan.plan.destroy();
    parentElement.pararecoverPlan = null;
  };
}
""",
)


def plan_view(
    picture: Picture,
    *,
    key: str,
    height: int | None = None,
    on_select: Callable[[str | None], Any] | None = None,
) -> None:
    """Draw a plan.

    Args:
        picture: What ``pararecover_core.draw.picture`` gave.
        key: Tells this drawing from others on the page.
        height: Pixels; by default what the picture wants, at most 480.
        on_select: Called with the id of the node that was clicked, or None for the empty canvas;
            without it a click marks the node and what it reaches, and the page does not run again.
    """

    def heard() -> None:
        if on_select is not None:
            on_select(st.session_state[key].get("node"))

    _plan(
        key=key,
        data={
            "picture": picture,
            "height": height or min(480, max(120, round(picture["height"]) + 12)),
            "asks": on_select is not None,
        },
        on_node_change=heard,
    )
