#!/usr/bin/env python3
"""Prints the events of a flow: subscribe.py http://127.0.0.1:8080/#TOKEN FLOW [COUNT]"""
import json
import sys
import urllib.parse
import urllib.request

address, token = sys.argv[1].split("/#")
flow = urllib.parse.quote(sys.argv[2])
count = int(sys.argv[3]) if len(sys.argv) > 3 else -1
request = urllib.request.Request(f"{address}/events?flow={flow}", headers={
    "Authorization": f"Bearer {token}", "Accept": "application/x-ndjson"})
with urllib.request.urlopen(request) as events:
    for line in events:
        event = json.loads(line)
        print(event["time"], event["name"], event["value"], flush=True)
        count -= 1
        if count == 0:
            break
