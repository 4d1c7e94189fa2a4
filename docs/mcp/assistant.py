#!/usr/bin/env python3
"""An assistant without a model: a fixed plan that follows only what answers say.

    docs/mcp/assistant.py why HPROF_CLI DUMP          why the heap is full
    docs/mcp/assistant.py grew HPROF_CLI OLD NEW      what grew
    docs/mcp/assistant.py waste HPROF_CLI DUMP        what can be saved

Prints the conclusion, the number of calls and the bytes of all answers. tests/mcp/plan.rs does the same for the samples.
"""
import json
import subprocess
import sys


class Server:
    def __init__(self, program, dumps):
        self.process = subprocess.Popen([program, "mcp", *dumps], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.calls = 0
        self.bytes = 0

    def call(self, tool, **arguments):
        self.calls += 1
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        request = {"jsonrpc": "2.0", "id": self.calls, "method": "tools/call", "params": params}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        self.bytes += len(line)
        result = json.loads(line)["result"]
        if result["isError"]:
            sys.exit(result["content"][0]["text"])
        return result["structuredContent"], result["content"][0]["text"]


def why(server):
    handle = server.call("dumps")[0]["rows"][0]["handle"]
    leaks, text = server.call("leaks", dump=handle)
    said = [text]
    if leaks["rows"]:
        first = leaks["rows"][0]
        point = first.get("accumulation_point") or {}
        following = first.get("object") or point.get("object") or first["path"][0]["object"]
        said.append(server.call("paths", dump=handle, object=point.get("object") or following, top=1)[1])
        said.append(server.call("dominators", dump=handle, of=following, top=5)[1])
    return said


def grew(server):
    old, new = (row["handle"] for row in server.call("dumps")[0]["rows"][:2])
    return [server.call("diff", old=old, new=new, top=8)[1], server.call("diff", old=old, new=new, group_by="class", top=8)[1]]


def waste(server):
    handle = server.call("dumps")[0]["rows"][0]["handle"]
    rows, text = server.call("waste", dump=handle, max_bytes=30_000)
    kinds = [f"{row['kind']}: " + ", ".join(field["field"] for field in row["fields"][:5] if field["field"]) for row in rows["rows"]]
    return [text, *kinds]


def main():
    plan, program, *dumps = sys.argv[1:]
    server = Server(program, dumps)
    for text in {"why": why, "grew": grew, "waste": waste}[plan](server):
        print(text)
    print(f"{server.calls} calls, {server.bytes} bytes")


if __name__ == "__main__":
    main()
