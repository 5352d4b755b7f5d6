"""Eight threads for each line of input, of which each compresses and computes digests."""

import hashlib
import sys
import threading
import zlib

size = int(sys.argv[1])
text = " ".join(str(number * 7919) for number in range(20000)).encode()
held = threading.Event()


def work():
    for _ in range(size):
        hashlib.sha256(text).digest()
        zlib.compress(text, 1)


def start(function):
    threads = [threading.Thread(target=function) for _ in range(8)]
    for thread in threads:
        thread.start()
    return threads


for line in sys.stdin:
    if line == "hold\n":
        held.clear()
        begun = threading.Barrier(9)

        def hold():
            begun.wait()
            held.wait()

        start(hold)
        begun.wait()
    elif line == "go on\n":
        held.set()
    else:
        for thread in start(work):
            thread.join()
    print("done", flush=True)
