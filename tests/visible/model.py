#!/usr/bin/env python3
"""A scripted model for film.sh: has the Copilot CLI run one command, then says what it did. Prints its address."""

import http.server
import json
import time

COMMAND = "./deploy.sh --to staging"


def answer(request):
    """The text and the tools of the next answer."""
    # Without tools, the CLI only wants a title for the session.
    if not request.get("tools"):
        return "Roll out the invoices", []
    last = [message["role"] for message in request["messages"] if message["role"] in ("user", "assistant", "tool")][-1]
    if last == "tool":
        return "Staging runs the new invoices: 3 of 3 services are healthy.", []
    arguments = json.dumps({"command": COMMAND, "description": "Roll out to staging", "initial_wait": 60})
    return "", [{"index": 0, "id": f"call_{time.time_ns()}", "type": "function",
                 "function": {"name": "bash", "arguments": arguments}}]


class Model(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def send(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        models = {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "tests"}]}
        self.send("application/json", json.dumps(models).encode())

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text, tools = answer(request)
        time.sleep(1)
        reason = "tool_calls" if tools else "stop"
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        base = {"id": "1", "created": 0, "model": "scripted"}
        if not request.get("stream"):
            message = {"role": "assistant", "content": text, **({"tool_calls": tools} if tools else {})}
            choice = {"index": 0, "message": message, "finish_reason": reason}
            whole = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
            return self.send("application/json", json.dumps(whole).encode())
        deltas = [({"role": "assistant", "content": text}, None)]
        deltas += [({"tool_calls": [tool]}, None) for tool in tools] + [({}, reason)]
        chunks = [{**base, "object": "chat.completion.chunk",
                   "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} for delta, finish in deltas]
        chunks[-1]["usage"] = usage
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]
        return self.send("text/event-stream", "".join(lines).encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
server.serve_forever()
