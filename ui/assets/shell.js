// Runs in the page itself: keeps the annotator's name for a reload, tells the tokens which theme
// is in use, and starts with the sidebar closed where the window is narrow.
const NARROW = 1100;

function followTheme() {
  const app = document.querySelector(".stApp");
  if (!app) return;
  document.documentElement.style.colorScheme = getComputedStyle(app).colorScheme;
}

function startNarrow() {
  const close = document.querySelector(
    '[data-testid="stSidebar"][data-collapsed="false"] [data-testid="stSidebarCollapseButton"] button'
  );
  if (window.innerWidth < NARROW && close) close.click();
}

export default function ({ data }) {
  if (data.cookie) {
    const age = data.cookie.value ? 15552000 : 0;
    document.cookie =
      `${data.cookie.name}=${data.cookie.value}; path=/; max-age=${age}; SameSite=Strict`;
  }
  followTheme();
  if (window.pararecoverFrame) return;
  window.pararecoverFrame = new MutationObserver(followTheme);
  const app = document.querySelector(".stApp");
  if (app) window.pararecoverFrame.observe(app, { attributes: true, attributeFilter: ["class"] });
  startNarrow();
}
