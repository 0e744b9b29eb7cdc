"""Writes the corpora's provenance page: what they meet, what they miss, what was chosen.

``python -m lachesis.calibrate.provenance traces/README.md`` measures the shipped corpora
and writes the page. Every number on it is computed; the prose around the tables stands here.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lachesis.calibrate import signal_check
from lachesis.calibrate.measurement import measure
from lachesis.traces.generator import corpora, published, specification
from lachesis.traces.generator.specification import Specification

_INTRODUCTION = """# The built-in corpora

The traces behind the published evaluation are not public. The corpora that Lachesis ships are
synthetic: one generator (`python/lachesis/traces/generator`) draws them from one specification a
workload (`data/specifications/*.toml`), in which every value carries its source or says that it
was chosen, and for what. They are shipped as Parquet (`data/corpora`); `lachesis trace generate
NAME` makes them anew, with another seed or another size if asked. Token counts are generated; no
text was tokenised.

This page is written by `python -m lachesis.calibrate.provenance traces/README.md`, which
measures the shipped corpora. Lifetimes are those of the reference clock (0.2 s an output token,
1 s an observation, tool delays exponential, user delay log-normal with median 120 s and spread
1.0), with one set of drawn delays; other draws move the ratios by a few per cent and the
separabilities by up to 0.01.

"Published" is Lachesis (arXiv:2610.08378v1). A figure is *met* when it is exact, within the
stated tolerance, or inside the published band.
"""

_STRUCTURE = """## How the sessions are built

**Single agent** (`tau3-*`, `bfclv4-*`). A session has turns, a turn has rounds joined by tool
calls. A turn writes its reasoning-laden segment; when the next message arrives, what it carries
forward is written anew as a reasoning-stripped segment, and the last turn of a session writes
none. The prompt is one segment that all sessions of a workload share. BFCLv4 sessions have, behind
it, a prompt of their own (their tool sets differ), sized by what Table 3's tokens written leave.
The number of tau3 turns follows from tokens written and Figure 4(b); BFCLv4's is the data set's.
In tau3-banking and BFCLv4 long-context mean turns are far longer than median ones, and the longest
are last turns, which all that a session carries outlives. In BFCLv4 long-context nearly all last
turns are long, and 18 % of the others; the long ones are alike (9,000 tokens, half of them
reasoning, most of it done before the first call), and what a turn does not carry forward is its
reasoning. In tau3-banking the longest turns hold observations, and a turn reasons for a bounded
number of tokens: what else it does not carry forward are observations, as if the harness dropped
retrieved documents with the turn. Were all of it reasoning, single requests would reason for tens
of thousands of tokens.

**Multi-agent** (the others). A lead delegates, in one turn, to workers that run their rounds in
contexts of their own; a reviewer follows each worker and is given a share of its trace. A
delegation starts several workers at once, up to ten. A delegation lasts as long as its slowest
worker and that worker's reviewer, so the published ratio of lead to worker lifetimes leaves time
for one to three delegations one after another; only workers side by side make them many and their
contexts short, which the write rates behind the published device lifetimes ask for. Table 3's
requests, of which each worker takes at least two with its reviewer, are the other limit. No session
delegates more than ten times, and no worker runs more rounds than AOrchestra's public limits allow,
but for Terminal-Bench, where 30 would cut the longest workers short (here at most 50). Prompts of
leads, workers and reviewers are shared by all sessions of a workload. `multi-agent-no-reviewer` is
the same sessions without the reviewers' requests. No reasoning counts are given here, since
nothing strips it.

**Whole-number adjustment.** Sizes are drawn from the specified laws at the middles of equal
strata, so that medians and means hold at the corpus's own size; totals are then met by splitting
whole numbers by largest remainder (turns, rounds, and the tokens of a total over its parts). In
tau3 the last difference to tokens written is spread over all laden turns in proportion (far below
one per cent); in BFCLv4 the sessions' own prompts take it; in the multi-agent corpora the
workers', reviewers' and leads' tokens are shares of the total from the start. Tokens processed are
met by the length of the shared prompt, which the specification states.
"""

_FITTED = """## What was fitted, and what was only checked

Nothing below depends on model, memory split, SLO or policy: one set of corpora and one fixed part
of a step (`step_overhead_ms` of `rubin-hbf`, docs/presets.md) serve all of them.

Fitted:

- HBM-first device-years, multi-agent, 1.9 to 4.8 over both models, all splits and both SLOs
  (Section 5.3), by the output share of workers, the number of workers, the length of their prompt
  and the fixed part of a step;
- the gain of about 10 on the daisy chain at the tight SLO (Section 5.3), by the same and by the
  lead's share of writes;
- the gain without the predictive path, 1.11 to 2.00 at the tight SLO (Section 5.4), together with
  these. At 4/4 ours is above it: it asks for more KV live at one time than the tenfold gain on the
  daisy chain leaves room for;
- device-years of tau3 (Section 5.5), by how long a turn of tau3-banking reasons;
- device-years of BFCLv4 (Section 5.5), by which turns of BFCLv4 long-context are long, and by how
  much they reason; Section 3.3 alone also allows a few turns of tens of thousands of tokens, or
  turns that reason little, with lives from a third to 1.6 times ours (docs/reproduction.md);
- the gain of BFCLv4 at 1/7 (Section 5.5), by when a turn of BFCLv4 long-context reasons.

The last choice among corpora that fit Section 3 alike was made by how many rows of
`lachesis reproduce` they meet and by whether the load that `lachesis run multi-agent` finds meets
the SLO in its own run: chance alone moves both (docs/reproduction.md).

Only checked: reviewers' writes that reach flash without the predictive path, 45 to 95 %
(Section 5.4; the reviewer's share of the trace is that of an earlier fit; ours fall below it at the
tight SLO where HBM has the most slots, for the same reason); the gain on the daisy
chain at the loose SLO; gains of Lachesis but BFCLv4's at 1/7; HBM shares; what ranking adds; and
the orderings.

`lachesis reproduce` prints each of them beside ours.

**Beside real agents.** Public usage logs of Claude Code have sub-agents of 11 requests that write
76,000 tokens (medians), behind a prefix of 8,684, and 3 a session. Ours make 3 to 7 requests and
write 4,000 to 11,000 tokens, behind 6,000, and there are 4 to 17 a session: Table 3 has 58,000 to
98,000 tokens a session (DeepSearchQA 298,000) for all agents together, so workers like those would
leave room for one. Outputs are longer than there (435 tokens a request on average), since reviewers
answer in one long request.
"""

_SIGNAL = """## The spawn signal is planted

Instructions and contexts of the spawn records are made-up sentences. How elaborate they sound, and
how many optional tools a worker is given, follows the worker's own lifetime, blurred by noise
(`data/spawn_signal.toml`): the lifetime was there first, and the words were made to tell it. The
blur is weaker for short workers, since equal blur at the published Kendall's tau finds only about
half of the shortest tenth. A predictor that recovers the published figures on these corpora shows
that the predictor works, and nothing about how predictable real workers are.
"""


def page() -> str:
    """The page, measured on the shipped corpora."""
    figures_published = published.load()
    figures = {name: measure(corpora.load(name)) for name in specification.names()}
    specs = {name: specification.load(name) for name in specification.names()}
    parts = [
        _INTRODUCTION,
        _table_3(specs, figures),
        _figure_4b(figures_published.figure_4b, figures),
        _bands(figures_published.bands, figures),
        _plausibility(figures),
        _STRUCTURE,
        _FITTED,
        _SIGNAL,
        _signal_figures(figures_published.predictor),
        _choices(specs),
    ]
    return "\n".join(part.rstrip() + "\n" for part in parts if part)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _head(*cells: str) -> list[str]:
    return [_row(*cells), "|" + "---|" * len(cells)]


def _mark(met: bool) -> str:
    return "met" if met else "**missed**"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _table_3(specs: Mapping[str, Specification], figures: Mapping[str, Mapping[str, float]]) -> str:
    lines = ["## Table 3: counts", "", *_head("workload", "figure", "published", "ours", "off", "")]
    for name, spec in specs.items():
        counts = spec.counts
        wanted = {
            "sessions": (counts.sessions.value, 0.0),
            "requests": (counts.requests.value, 0.0),
            "tokens_written": (counts.tokens_written.value, 0.02),
        }
        if counts.tokens_processed is not None:
            wanted["tokens_processed"] = (counts.tokens_processed.value, 0.02)
        for figure, (target, tolerance) in wanted.items():
            ours = figures[name][figure]
            off = ours / target - 1.0
            lines.append(
                _row(name, figure.replace("_", " "), f"{target:,}", f"{ours:,.0f}",
                     f"{off:+.2%}", _mark(abs(off) <= tolerance))
            )  # fmt: skip
    return "\n".join(lines)


def _figure_4b(wanted: published.Figure4b, figures: Mapping[str, Mapping[str, float]]) -> str:
    lines = [
        f"## Figure 4(b): tokens a turn writes (within {wanted.tolerance:.0%})",
        "",
        *_head("workload", "figure", "published", "ours", "off", ""),
    ]
    for name, targets in wanted.workloads.items():
        for figure, target in targets.items():
            ours = figures[name][figure]
            off = ours / target - 1.0
            mark = _mark(abs(off) <= wanted.tolerance)
            if f"{name} {figure}" in wanted.unfit:
                mark = "not fitted: published above the published mean"
            lines.append(
                _row(name, figure.replace("_", " "), f"{target:,}", _number(ours),
                     f"{off:+.1%}", mark)
            )  # fmt: skip
    return "\n".join(lines)


def _bands(bands: Sequence[published.Band], figures: Mapping[str, Mapping[str, float]]) -> str:
    lines = [
        "## Published bands (sections 3.3 to 3.5)",
        "",
        "A band is the range over the published workloads; each of ours must lie inside, to the"
        " digits that are published. The last column says how much of the band's width ours span.",
        "",
        *_head("figure", "published band", "ours", "outside", "span"),
    ]
    for band in bands:
        low, high = band.range
        values = {
            name: measured[band.figure]
            for name, measured in figures.items()
            if band.figure in measured
        }
        ours = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
        # A published end is a rounded number, so ours are compared at its precision.
        outside = [
            name for name, value in values.items() if not low <= round(value, band.decimals) <= high
        ]
        span = (min(max(values.values()), high) - max(min(values.values()), low)) / (high - low)
        lines.append(
            _row(f"{band.says} ({band.source})", f"{low:g} to {high:g}", ours,
                 f"**{', '.join(outside)}**" if outside else "none", f"{max(span, 0.0):.0%}")
        )  # fmt: skip
    return "\n".join(lines)


def _plausibility(figures: Mapping[str, Mapping[str, float]]) -> str:
    lines = [
        "## Sizes that no table publishes",
        "",
        *_head("workload", "output tokens a request", "outputs' share of writes",
               "turns or workers a session", "lead's share of writes",
               "mean context of a running request"),
    ]  # fmt: skip
    for name, measured in figures.items():
        per_session = measured.get(
            "workers_per_session", measured.get("turns", 0.0) / measured["sessions"]
        )
        lines.append(
            _row(
                name,
                _number(measured["output_per_request"]),
                f"{measured['output_share_of_writes']:.0%}",
                f"{per_session:.2f}",
                f"{measured['lead_write_share']:.1%}" if "lead_write_share" in measured else "",
                _number(measured["mean_context"]),
            )
        )
    return "\n".join(lines)


def _signal_figures(wanted: published.Predictor) -> str:
    ours = signal_check.check(corpora.load("multi-agent"))
    targets = {
        "kendall_tau": wanted.kendall_tau,
        "shortest_tenth_found": wanted.shortest_tenth_found,
        "longest_tenth_taken": wanted.longest_tenth_taken,
    }
    lines = [
        "Measured with ridge regression on log lifetime (hashed bag of words, lengths, tools,"
        " position), five folds, sessions kept whole, all five benchmarks in one model:",
        "",
        *_head("figure", f"published ({wanted.source})", "ours", ""),
    ]
    for figure, target in targets.items():
        met = abs(ours[figure] - target) <= wanted.tolerance
        lines.append(
            _row(figure.replace("_", " "), f"{target:.3f}", f"{ours[figure]:.3f}", _mark(met))
        )
    return "\n".join(lines)


def _choices(specs: Mapping[str, Specification]) -> str:
    lines = [
        "## What was chosen",
        "",
        "Every value of the specifications that has no published or measured source, by workload.",
    ]
    for name in specs:
        path = specification.SPECIFICATION_DIRECTORY / f"{name}.toml"
        document = tomllib.loads(path.read_text("utf-8"))
        lines += ["", f"### {name}", "", *_head("value", "is", "because")]
        for key, value, source in _leaves(document, ""):
            if source.startswith(("chosen", "made up", "between")):
                shown = value if len(value) <= 60 else value[:57] + "..."
                lines.append(_row(f"`{key}`", shown, source))
    return "\n".join(lines)


def _leaves(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, str, str]]:
    for key, item in table.items():
        if not isinstance(item, dict):
            continue
        if "source" in item and "value" in item:
            yield f"{prefix}{key}", str(item["value"]), str(item["source"])
        else:
            yield from _leaves(item, f"{prefix}{key}.")


def main(arguments: list[str]) -> int:
    """Write the page to the path given, or to standard output."""
    text = page()
    if not arguments:
        sys.stdout.write(text)
        return 0
    target = Path(arguments[0])
    partial = target.with_name(target.name + ".part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(target)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
