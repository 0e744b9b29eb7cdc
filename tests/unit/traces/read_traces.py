"""Short ways to look at what a reader made of a log."""

from collections import Counter


def requests(trace, session=None):
    """Rows of the requests table, of one session or all."""
    rows = trace.requests.to_pylist()
    return [row for row in rows if session is None or row["session"].endswith(session)]


def inputs(trace, session=None):
    """Input tokens of every request, from the spans."""
    return _span_sums(trace, session, lambda span: True)


def matched(trace, session=None):
    """Matched input tokens of every request."""
    return _span_sums(trace, session, lambda span: not span["written"])


def _span_sums(trace, session, chosen):
    found = Counter()
    for span in trace.spans.to_pylist():
        if chosen(span):
            found[span["session"], span["request"]] += span["tokens"]
    return [found[row["session"], row["request"]] for row in requests(trace, session)]


def column(trace, name, session=None):
    """A column of the requests."""
    return [row[name] for row in requests(trace, session)]


def closures(trace, session=None):
    """How many segments of each class each boundary closed."""
    return Counter(
        (row["class"], row["closed_by"])
        for row in trace.segments.to_pylist()
        if session is None or row["session"].endswith(session)
    )


def edges(trace, number, session=None):
    """(request, kind, delay_s) of one request's edges."""
    return [
        (edge["request"], edge["kind"], edge["delay_s"])
        for edge in requests(trace, session)[number]["after"]
    ]


def plain_matched(calls):
    """Matched tokens by the plainest rule: what the context held, unless the input is shorter.

    `calls`: (input, output) of one agent's calls in order, without boundaries. None where the
    input is shorter, since then a count of tokens alone does not say what was kept.
    """
    found, held = [], 0
    for given, made in calls:
        found.append(held if given >= held else None)
        held = given + made
    return found
