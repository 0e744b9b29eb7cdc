"use strict";
// Light or dark: the reader's system decides until the button is pressed. Paper is always light.
const theme = (() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const paper = window.matchMedia("print");
  const listeners = [];
  let printing = false;

  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const tell = () => {
    button.setAttribute("aria-pressed", String(isDark()));
    listeners.forEach((listener) => listener());
  };
  const print = (starts) => {
    if (printing !== starts) {
      printing = starts;
      tell();
    }
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    tell();
  });
  system.addEventListener("change", tell);
  paper.addEventListener("change", (event) => print(event.matches));
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  button.setAttribute("aria-pressed", String(isDark()));

  const light = { ink: "#1d2329", quiet: "#566370", grid: "#dde2e7", line: "#b4bdc6",
    warranty: "#a50026", paper: "#ffffff" };
  const dark = { ink: "#e6eaee", quiet: "#a2adb8", grid: "#2d353d", line: "#4a5561",
    warranty: "#ff8a8a", paper: "#12161b" };
  return {
    colours: () => (isDark() && !printing ? dark : light),
    isPrinting: () => printing,
    onChange: (listener) => listeners.push(listener),
  };
})();
