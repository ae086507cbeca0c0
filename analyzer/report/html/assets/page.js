// Every page: copy buttons, the theme, closed parts opened for print (those of class "stays" stay as they are).
(() => {
  "use strict";
  const said = (button, text) => {
    const before = button.textContent;
    button.textContent = text;
    setTimeout(() => { button.textContent = before; }, 1500);
  };
  // Clipboards are closed to pages opened as a file in some browsers: select instead, Ctrl+C does the rest.
  const select = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const code = button.parentElement.querySelector("code");
    select(code);
    const byHand = () => said(button, document.execCommand("copy") ? "Copied" : "Press Ctrl+C");
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(() => said(button, "Copied"), byHand);
    else byHand();
  });
  const theme = document.getElementById("theme");
  if (theme) {
    const dark = () => {
      const chosen = document.documentElement.dataset.theme;
      return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    };
    const name = () => { theme.textContent = dark() ? "Light" : "Dark"; };
    theme.addEventListener("click", () => {
      document.documentElement.dataset.theme = dark() ? "light" : "dark";
      name();
      document.dispatchEvent(new Event("themechange"));
    });
    name();
  }
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open]):not(.stays)")];
    for (const d of opened) d.open = true;
  });
  addEventListener("afterprint", () => { for (const d of opened) d.open = false; });
})();
