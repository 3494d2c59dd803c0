// Runs in the page itself: keeps the annotator's name for a reload, tells the tokens which theme
// is in use, and starts with the sidebar closed where the window is narrow.
const NARROW = 1100;

function followTheme() {
  const app = document.querySelector(".stApp");
  if (!app) return;
  document.documentElement.style.colorScheme = getComputedStyle(app).colorScheme;
}

// Once a page load, as soon as there is a sidebar: behind the gate it comes a moment later.
function startNarrow(tries = 20) {
  if (window.pararecoverFitted) return;
  const close = document.querySelector(
    '[data-testid="stSidebar"][data-collapsed="false"] [data-testid="stSidebarCollapseButton"] button'
  );
  if (close || window.innerWidth >= NARROW) window.pararecoverFitted = true;
  else if (tries > 0) setTimeout(startNarrow, 100, tries - 1);
  if (window.innerWidth < NARROW && close) close.click();
}

export default function ({ data }) {
  if (data.cookie) {
    const age = data.cookie.value ? 15552000 : 0;
    document.cookie =
      `${data.cookie.name}=${data.cookie.value}; path=/; max-age=${age}; SameSite=Strict`;
  }
  followTheme();
  startNarrow();
  if (window.pararecoverFrame) return;
  window.pararecoverFrame = new MutationObserver(followTheme);
  const app = document.querySelector(".stApp");
  if (app) window.pararecoverFrame.observe(app, { attributes: true, attributeFilter: ["class"] });
}
