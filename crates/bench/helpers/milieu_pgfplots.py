#!/usr/bin/env python3
"""A report of its own: a result as a figure that LaTeX draws (pgfplots).

    chmod +x milieu_pgfplots.py
    milieu bench report --with ./milieu_pgfplots.py results.json -o figure.tex
    milieu bench report --with ./milieu_pgfplots.py results.json -- --metric rate --x size

The preamble needs \\usepackage{pgfplots} and \\usepgfplotslibrary{groupplots}; with
--standalone the figure is a whole document. Fonts, sizes and colours are then
those of the text around it. It is a program like any that reads results in JSON
from its standard input, and may be changed at will.
"""

import argparse
import json
import sys

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "%": r"\%", "#": r"\#", "&": r"\&",
    "$": r"\$", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
}


def tex(text):
    """A text that LaTeX shows as it is, and takes for no command."""
    plain = "".join(c if c.isprintable() else " " for c in shown(text))
    return "".join(SPECIAL.get(c, c) for c in plain)


def shown(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(shown(one) for one in value)
    return str(value)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def axis_of(tests, wanted):
    """The variable of the horizontal axis: the one with the most numbers."""
    values = {}
    for test in tests:
        for point in test["points"]:
            for name, value in point["variables"].items():
                values.setdefault(name, set()).add(value if is_number(value) else None)
    numbers = {name: len(known) for name, known in values.items() if None not in known}
    if wanted is not None:
        if wanted not in numbers:
            sys.exit(f"no variable `{wanted}` has numbers; there are {', '.join(numbers)}")
        return wanted
    if not numbers:
        sys.exit("no variable has numbers for the horizontal axis")
    return max(numbers, key=numbers.get)


def series(tests, metric, x):
    """Lines by their names: points (x, mean, half of the interval)."""
    changing = {}
    for test in tests:
        for point in test["points"]:
            for name, value in point["variables"].items():
                changing.setdefault(name, set()).add(shown(value))
    lines = {}
    for test in tests:
        for point in test["points"]:
            statistics = point["metrics"].get(metric)
            if statistics is None or x not in point["variables"]:
                continue
            name = [test["name"]] if len(tests) > 1 else []
            name += [
                f"{variable} = {shown(value)}"
                for variable, value in point["variables"].items()
                if variable != x and len(changing[variable]) > 1
            ]
            mean, confidence = statistics["mean"], statistics["confidence"]
            half = (confidence[1] - confidence[0]) / 2 if confidence else 0
            line = lines.setdefault(", ".join(name), [])
            line.append((point["variables"][x], mean, half))
    return lines


def plots(lines):
    for name, points in lines.items():
        yield r"\addplot+ [error bars/.cd, y dir=both, y explicit] coordinates {"
        for x, y, half in sorted(points):
            yield f"  ({x!r}, {y!r}) +- (0, {half!r})"
        yield "};"
        if name:
            yield rf"\addlegendentry{{{tex(name)}}}"


def figure(results, metrics, wanted, options):
    tests = results["tests"]
    properties = results["group"].get("properties", {})
    x = axis_of(tests, wanted)
    label = properties.get("category-axis", properties.get("categoryAxisLabel", x))
    yield r"\begin{tikzpicture}"
    yield r"\begin{groupplot} ["
    yield f"  group style={{group size={len(metrics)} by 1, horizontal sep=4em}},"
    yield r"  legend pos=outer north east, legend cell align=left, grid=major,"
    yield f"  xlabel={{{tex(label)}}},{options}]"
    for metric in metrics:
        name = properties.get(f"value-axis.{metric}", metric)
        if len(metrics) == 1:
            name = properties.get("value-axis", properties.get("valueAxisLabel", name))
        yield rf"\nextgroupplot [ylabel={{{tex(name)}}}]"
        yield from plots(series(tests, metric, x))
    yield r"\end{groupplot}"
    yield r"\end{tikzpicture}"


def main():
    parser = argparse.ArgumentParser(description="A result as a figure of LaTeX (pgfplots).")
    parser.add_argument("--metric", action="append", help="what was measured; all otherwise")
    parser.add_argument("--x", help="the variable at the horizontal axis")
    parser.add_argument("--log", action="append", choices=["x", "y"], default=[])
    parser.add_argument("--standalone", action="store_true", help="a whole document")
    chosen = parser.parse_args()
    results = json.load(sys.stdin)
    known = sorted(
        {name for test in results["tests"] for point in test["points"] for name in point["metrics"]}
    )
    for metric in chosen.metric or []:
        if metric not in known:
            sys.exit(f"nothing measured is `{metric}`; there are {', '.join(known)}")
    options = "".join(f" {axis}mode=log," for axis in chosen.log)
    lines = figure(results, chosen.metric or known, chosen.x, options)
    if chosen.standalone:
        print(r"\documentclass{standalone}")
        print(r"\usepackage[T1]{fontenc}")
        print(r"\usepackage{pgfplots}")
        print(r"\usepgfplotslibrary{groupplots}")
        print(r"\pgfplotsset{compat=1.16}")
        print(r"\begin{document}")
    print("% " + " ".join(tex(results["group"]["name"]).split()))
    for line in lines:
        print(line)
    if chosen.standalone:
        print(r"\end{document}")


if __name__ == "__main__":
    main()
