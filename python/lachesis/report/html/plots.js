// Draws the plots: the chosen family of questions, the chosen policies, in the theme's colours.
const report = JSON.parse(document.getElementById("report-data").textContent);

(() => {
  const PAPER_WIDTH_PX = 680;
  const PAPER_HEIGHT = 0.8;
  const NARROW_PX = 520;
  const selects = [...document.querySelectorAll("[data-selector]")];
  const checks = [...document.querySelectorAll("[data-policy]")];
  let family = 0;

  const hidden = () => new Set(checks.filter((box) => !box.checked).map((box) => box.dataset.policy));

  // "@ink" and the like stand where the theme decides.
  const coloured = (node, colours) => {
    if (typeof node === "string") {
      return node.startsWith("@") && colours[node.slice(1)] ? colours[node.slice(1)] : node;
    }
    if (Array.isArray(node)) return node.map((each) => coloured(each, colours));
    if (node === null || typeof node !== "object") return node;
    return Object.fromEntries(Object.entries(node).map(([key, each]) =>
      [key, key.endsWith("color") || typeof each === "object" ? coloured(each, colours) : each]));
  };

  // A trace of one policy is hidden whole; one of many policies loses their bars.
  const kept = (trace, without) => {
    const policies = trace.meta && trace.meta.policies;
    if (!policies) return without.has(trace.meta && trace.meta.policy) ? [] : [trace];
    const keep = policies.map((policy) => !without.has(policy));
    const cut = (values) => values.filter((_, index) => keep[index]);
    return [{ ...trace, x: cut(trace.x), y: trace.y.map(cut), customdata: cut(trace.customdata) }];
  };

  const axis = (given, colours, size) => ({
    automargin: true, gridcolor: colours.grid, linecolor: colours.line, zerolinecolor: colours.line,
    tickcolor: colours.line, ...given,
    title: { standoff: 8, font: { size }, ...(given && given.title) },
  });

  const layout = (panel, width) => {
    const colours = theme.colours();
    const size = width < NARROW_PX ? 11 : 13;
    const given = coloured(panel.layout, colours);
    return {
      ...given,
      width,
      height: Math.round(panel.height_px * (theme.isPrinting() && !panel.rows ? PAPER_HEIGHT : 1)),
      font: { family: "system-ui, sans-serif", size, color: colours.ink },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 10, r: 12, t: 10, b: 10 },
      dragmode: window.matchMedia("(pointer: coarse)").matches ? false : "zoom",
      hoverlabel: { bgcolor: colours.paper, bordercolor: colours.line, font: { color: colours.ink } },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", itemclick: false,
        itemdoubleclick: false, font: { size: Math.min(size, 12) } },
      xaxis: axis(given.xaxis, colours, size),
      yaxis: axis(given.yaxis, colours, size),
    };
  };

  const choiceOf = (plot) => {
    const own = document.querySelector(`[data-choice="${plot.key}"]`);
    return plot.follows ? family : own ? Number(own.value) : 0;
  };

  const chosen = (plot, label) => {
    if (plot.labels.length) return `${label}: ${plot.labels[choiceOf(plot)]}`;
    if (!plot.follows) return "";
    return selects.map((each) => `${each.dataset.label}: ${each.value}`).join(" · ");
  };

  const draw = (plot) => {
    const section = document.getElementById(`plot-${plot.key}`);
    const place = section.querySelector(".panels");
    const panels = plot.choices[choiceOf(plot)];
    section.querySelector("[data-empty]").hidden = panels.length > 0;
    // What was chosen stands beside each plot: the selectors scroll away, and paper has none.
    const note = section.querySelector("[data-shown]");
    note.textContent = chosen(plot, note.dataset.label);
    note.hidden = !note.textContent;
    while (place.children.length > panels.length) {
      window.Plotly.purge(place.lastElementChild.querySelector(".drawing"));
      place.lastElementChild.remove();
    }
    const without = hidden();
    panels.forEach((panel, index) => {
      let figure = place.children[index];
      if (!figure) {
        figure = document.createElement("figure");
        const [caption, drawn, readout] = ["figcaption", "div", "p"].map((tag) =>
          document.createElement(tag));
        drawn.className = "drawing";
        readout.className = "readout";
        readout.setAttribute("role", "status");
        figure.append(caption, drawn, readout);
        place.append(figure);
        walk.attach(drawn, readout);
      }
      const title = section.querySelector("h2").textContent;
      const drawing = figure.querySelector(".drawing");
      figure.className = panel.wide ? "wide" : "";
      figure.firstElementChild.textContent = panel.title;
      figure.firstElementChild.hidden = !panel.title;
      drawing.setAttribute("aria-label", `Plot: ${title}${panel.title ? `, ${panel.title}` : ""}. `
        + "Arrow keys read its values.");
    });
    // Widths are known once all figures stand in the grid.
    panels.forEach((panel, index) => {
      const drawing = place.children[index].querySelector(".drawing");
      const data = coloured(panel.data.flatMap((trace) => kept(trace, without)), theme.colours());
      const width = theme.isPrinting() ? PAPER_WIDTH_PX : place.children[index].clientWidth;
      window.Plotly.react(drawing, data, layout(panel, width), {
        displayModeBar: false, responsive: false,
      });
      walk.drawn(drawing);
    });
  };
  const drawAll = () => report.plots.forEach(draw);

  const select = (changed) => {
    const fits = (values) => selects.filter((each) => values[each.dataset.selector] === each.value).length;
    const name = changed.dataset.selector;
    const able = report.families
      .map((values, index) => ({ values, index }))
      .filter(({ values }) => values[name] === changed.value);
    able.sort((one, other) => fits(other.values) - fits(one.values) || one.index - other.index);
    family = able[0].index;
    selects.forEach((each) => { each.value = report.families[family][each.dataset.selector]; });
    report.plots.filter((plot) => plot.follows).forEach(draw);
  };

  selects.forEach((each) => {
    each.value = report.families[0][each.dataset.selector];
    each.addEventListener("change", () => select(each));
  });
  checks.forEach((box) => box.addEventListener("change", drawAll));
  report.plots.forEach((plot) => {
    const own = document.querySelector(`[data-choice="${plot.key}"]`);
    if (own) own.addEventListener("change", () => draw(plot));
  });
  theme.onChange(drawAll);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    // A phone's address bar changes the height alone.
    if (window.innerWidth !== width && !theme.isPrinting()) {
      width = window.innerWidth;
      drawAll();
    }
  });
  drawAll();
})();
