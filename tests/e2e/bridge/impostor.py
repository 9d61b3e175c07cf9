"""Poses as the tray: serves the bridge's socket, knows the key, and proves both that and which process it is.

Prints a line for each connection: "obeyed" if the bridge proved itself in turn, else "left".
"""

import hashlib
import hmac
import json
import os
import socket
import sys

path, key = sys.argv[1], open(sys.argv[2], "rb").read()
NONCE = "0123456789abcdef"
listener = socket.socket(socket.AF_UNIX)
listener.bind(path + ".posed")
listener.listen()
os.rename(path + ".posed", path)
while True:
    connection, _ = listener.accept()
    lines = connection.makefile("rw")
    hello = json.loads(lines.readline())
    seal = os.memfd_create(f"pilotlight-{hello['nonce']}-{hello['pid']}")
    text = f"tray:{hello['nonce']}:{hello['pid']}:{hello['session']}".encode()
    proof = hmac.new(key, text, hashlib.sha256).hexdigest()
    welcome = {"t": "welcome", "v": hello["v"], "nonce": NONCE, "proof": proof, "pid": os.getpid()}
    try:
        lines.write(json.dumps(welcome) + "\n")
        lines.flush()
        answer = lines.readline()
    except OSError:
        answer = ""
    print("obeyed" if '"proof"' in answer else "left", flush=True)
    os.close(seal)
