"""Makes a Python program an application of `milieu bench`.

    import milieu_bench

    @milieu_bench.application
    def measure(parameters, ready):
        return {"seconds": work(parameters["iterations"])}

`measure` gets what the application is told and returns what it measured: a
number, or several by name. `ready(port=4104)` tells that what comes later may
start. An exception is told as the reason why nothing was measured; raise
`Invalid` where something was measured and means nothing.
"""

import json
import sys


class Invalid(Exception):
    """What was measured means nothing."""


def _say(what, value):
    # Numbers that JSON lacks are no results.
    print(json.dumps({what: value}, allow_nan=False), flush=True)


def application(measure):
    """Runs `measure` as the whole program."""
    try:
        start = json.loads(sys.stdin.readline())
        _say("result", measure(start["parameters"], lambda **told: _say("ready", told)))
    except Invalid as why:
        _say("invalid", str(why))
    except Exception as why:
        _say("error", f"{type(why).__name__}: {why}")
        sys.exit(1)
    return measure
