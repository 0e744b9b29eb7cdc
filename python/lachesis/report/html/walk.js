// Values by keyboard: arrow keys walk through a plot's points, and what the pointer would be shown
// at a point is shown there, and said below the plot.
const walk = (() => {
  const HINT = "Arrow keys: left and right along a line, up and down to another.";
  const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  const LABEL_MS = 60;
  const states = new WeakMap();

  // Lines with a value to tell: for each its number, and the numbers of its points.
  const linesOf = (drawing) => drawing.data
    .map((trace, curve) => {
      const isTold = (index) => {
        const sizes = trace.orientation === "h" ? trace.x : trace.y;
        const present = sizes[index] !== null && sizes[index] !== undefined;
        return present && !(trace.type === "bar" && sizes[index] === 0);
      };
      const points = trace.hoverinfo === "skip" ? [] : [...trace.x.keys()].filter(isTold);
      return { curve, points };
    })
    .filter(({ points }) => points.length);

  // Plotly's own label, in one line: the same words and digits as under the pointer.
  const labelOf = (drawing) => [...drawing.querySelectorAll(".hoverlayer .hovertext")]
    .map((label) => {
      const [values, name] = ["nums", "name"].map((part) => {
        const text = label.querySelector(`text.${part}`);
        if (!text) return "";
        const lines = [...text.querySelectorAll("tspan.line")];
        return (lines.length ? lines : [text]).map((line) => line.textContent.trim())
          .filter(Boolean).join(", ");
      });
      return name ? `${name}: ${values}` : values;
    })
    .join("; ");

  const clear = (drawing) => {
    const state = states.get(drawing);
    state.at = null;
    state.readout.textContent = "";
    if (drawing._fullLayout) window.Plotly.Fx.unhover(drawing);
  };

  const show = (drawing) => {
    const state = states.get(drawing);
    const { curve, points } = state.lines[state.at.line];
    window.Plotly.Fx.hover(drawing, [{ curveNumber: curve, pointNumber: points[state.at.point] }]);
    // Plotly draws at most one label in so many milliseconds, and tells nobody of it.
    window.clearTimeout(state.timer);
    state.timer = window.setTimeout(() => say(drawing), LABEL_MS);
  };

  const say = (drawing) => {
    const state = states.get(drawing);
    if (!state.at) return;
    const { points } = state.lines[state.at.line];
    const place = `line ${state.at.line + 1} of ${state.lines.length}, `
      + `point ${state.at.point + 1} of ${points.length}`;
    state.readout.textContent = `${labelOf(drawing)} (${place})`;
  };

  const within = (value, length) => Math.min(Math.max(value, 0), length - 1);

  const press = (drawing, event) => {
    const state = states.get(drawing);
    if (event.altKey || event.ctrlKey || event.metaKey || !state.lines.length) return;
    if (event.key === "Escape" && state.at) {
      clear(drawing);
      state.readout.textContent = HINT;
      return;
    }
    const step = STEPS[event.key];
    if (!step && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    if (!state.at) {
      state.at = { line: 0, point: event.key === "End" ? state.lines[0].points.length - 1 : 0 };
    } else if (step) {
      const line = within(state.at.line + step[0], state.lines.length);
      state.at = { line, point: within(state.at.point + step[1], state.lines[line].points.length) };
    } else {
      const last = state.lines[state.at.line].points.length - 1;
      state.at.point = event.key === "End" ? last : 0;
    }
    show(drawing);
  };

  return {
    // A new drawing, with the place below it where values are said.
    attach: (drawing, readout) => {
      states.set(drawing, { readout, lines: [], at: null });
      drawing.tabIndex = 0;
      drawing.setAttribute("role", "application");
      drawing.setAttribute("aria-roledescription", "plot");
      drawing.addEventListener("keydown", (event) => press(drawing, event));
      drawing.addEventListener("focus", () => { readout.textContent = HINT; });
      drawing.addEventListener("blur", () => clear(drawing));
    },
    // It was drawn anew: with other points, perhaps.
    drawn: (drawing) => {
      const state = states.get(drawing);
      state.lines = linesOf(drawing);
      state.at = null;
      state.readout.textContent = document.activeElement === drawing ? HINT : "";
    },
  };
})();
