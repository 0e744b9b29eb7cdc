// The table of runs: sorted by its headings, cut by its filters, with the columns that are wanted.
(() => {
  const table = document.getElementById("runs-table");
  if (!table) return;
  const ROWS_AT_ONCE = 100;
  const FEW_TEXTS = 12;
  const { columns, rows } = report.table;
  const head = table.tHead;
  const body = table.tBodies[0];
  const status = document.getElementById("runs-status");
  const more = document.getElementById("runs-more");
  const filters = new Map();
  let sorted = null;
  let limit = ROWS_AT_ONCE;

  const element = (name, text, attributes) => {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    Object.entries(attributes || {}).forEach(([key, value]) => made.setAttribute(key, value));
    return made;
  };
  const grouped = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const whole = new Intl.NumberFormat("en");
  const text = (column, row) => {
    const value = column.values[row];
    if (value === null || value === undefined || value === "") return "–";
    if (column.kind === "truth") return value ? "yes" : "no";
    if (column.kind === "integer") return column.key === "seed" ? String(value) : whole.format(value);
    return column.kind === "number" ? grouped.format(value) : value;
  };
  const isNumber = (column) => column.kind === "number" || column.kind === "integer";

  // A test of a row, or null where the filter asks for nothing.
  const test = (column, asked) => {
    const words = asked.trim();
    if (!words) return null;
    if (isNumber(column)) {
      const range = words.match(/^(-?[\d.]+(?:e-?\d+)?)\s*\.\.\s*(-?[\d.]+(?:e-?\d+)?)$/i);
      const bound = words.match(/^(<=|>=|<|>|=)?\s*(-?[\d.]+(?:e-?\d+)?)$/i);
      const known = (check) => (row) => column.values[row] !== null && check(column.values[row]);
      if (range) return known((value) => value >= Number(range[1]) && value <= Number(range[2]));
      if (bound) {
        const end = Number(bound[2]);
        const checks = { "<": (v) => v < end, "<=": (v) => v <= end, ">": (v) => v > end,
          ">=": (v) => v >= end, "=": (v) => v === end };
        return known(checks[bound[1] || "="]);
      }
    }
    const exact = column.choices;
    const part = words.toLowerCase();
    return (row) => (exact ? text(column, row) === words : text(column, row).toLowerCase().includes(part));
  };

  const compare = (column) => (one, other) => {
    const [a, b] = [column.values[one], column.values[other]];
    // What a run lacks stands last, whichever way the column is sorted.
    if (a === null || b === null) return (a === null) - (b === null) || one - other;
    const order = typeof a === "string"
      ? a.localeCompare(b, "en", { numeric: true })
      : Number(a) - Number(b);
    return (sorted.descending ? -order : order) || one - other;
  };

  const fill = () => {
    const shown = columns.filter((column) => column.shown);
    const tests = columns.map((column) => test(column, filters.get(column.key) || "")).filter(Boolean);
    let found = [...Array(rows).keys()].filter((row) => tests.every((check) => check(row)));
    if (sorted) found = found.sort(compare(sorted.column));
    body.replaceChildren(...found.slice(0, limit).map((row) => {
      const line = element("tr");
      shown.forEach((column) => {
        const said = text(column, row);
        const cell = element("td", said, isNumber(column) ? { class: "number" } : {});
        if (said.length > 40) cell.title = said;
        line.append(cell);
      });
      return line;
    }));
    status.textContent = `${whole.format(found.length)} of ${whole.format(rows)} ${rows === 1 ? "run" : "runs"}`;
    more.hidden = found.length <= limit;
    more.textContent = `Show ${whole.format(Math.min(ROWS_AT_ONCE, found.length - limit))} more`;
  };

  const filterOf = (column) => {
    const about = { "aria-label": `Filter ${column.label}` };
    const texts = isNumber(column) ? [] : [...new Set(Array.from({ length: rows }, (_, row) => text(column, row)))];
    column.choices = !isNumber(column) && texts.length <= FEW_TEXTS && column.key !== "warnings";
    const field = element(column.choices ? "select" : "input", "", about);
    if (column.choices) {
      field.append(element("option", "all", { value: "" }));
      texts.sort().forEach((each) => field.append(element("option", each, { value: each })));
    } else {
      field.type = "text";
    }
    field.value = filters.get(column.key) || "";
    field.addEventListener(column.choices ? "change" : "input", () => {
      filters.set(column.key, field.value);
      limit = ROWS_AT_ONCE;
      fill();
    });
    return field;
  };

  const order = (heading, column) => {
    const on = sorted && sorted.column === column;
    heading.setAttribute("aria-sort", on ? (sorted.descending ? "descending" : "ascending") : "none");
    heading.querySelector(".arrow").textContent = on ? (sorted.descending ? " ▼" : " ▲") : "";
  };

  const build = () => {
    const names = element("tr");
    const fields = element("tr", "", { class: "filters" });
    columns.filter((column) => column.shown).forEach((column) => {
      const kind = isNumber(column) ? { class: "number" } : {};
      const heading = element("th", "", { scope: "col", "data-key": column.key, ...kind });
      const button = element("button", column.label, { type: "button", title: column.about });
      button.append(element("span", "", { class: "arrow", "aria-hidden": "true" }));
      button.addEventListener("click", () => {
        const again = sorted && sorted.column === column;
        // Numbers are asked for from the largest down.
        sorted = { column, descending: again ? !sorted.descending : isNumber(column) };
        [...names.children].forEach((each) =>
          order(each, columns.find((one) => one.key === each.dataset.key)));
        fill();
      });
      heading.append(button);
      order(heading, column);
      names.append(heading);
      const cell = element("td", "", kind);
      cell.append(filterOf(column));
      fields.append(cell);
    });
    head.replaceChildren(names, fields);
    fill();
  };

  const choices = document.querySelector("#runs-columns .choices");
  columns.forEach((column) => {
    const label = element("label", "", { title: column.about });
    const box = element("input", "", { type: "checkbox", "data-column": column.key });
    box.checked = column.shown;
    box.addEventListener("change", () => {
      column.shown = box.checked;
      // A filter that nobody sees would cut rows for no visible reason.
      if (!column.shown) filters.delete(column.key);
      build();
    });
    label.append(box, element("span", column.label));
    choices.append(label);
  });
  document.getElementById("runs-clear").addEventListener("click", () => {
    filters.clear();
    build();
  });
  more.addEventListener("click", () => {
    limit += ROWS_AT_ONCE;
    fill();
  });
  build();
})();
