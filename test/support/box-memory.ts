import { execFileSync } from "node:child_process";

const SEARCH = `
import json, os, sys
texts = json.load(sys.stdin)
found = {"processes": 0, "placeholder": 0, "value": 0}
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if texts["placeholder"].encode() not in open(f"/proc/{pid}/environ", "rb").read(): continue
        memory = open(f"/proc/{pid}/cmdline", "rb").read()
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
            for line in maps:
                low, high = (int(part, 16) for part in line.split(" ", 1)[0].split("-"))
                if not line.split(" ")[1].startswith("rw"): continue
                try:
                    mem.seek(low)
                    memory += mem.read(high - low)
                except (OSError, ValueError, OverflowError): pass
    except OSError: continue
    found["processes"] += 1
    for name, text in texts.items(): found[name] += text.encode() in memory
print(json.dumps(found))
`;

/**
 * Looks into the processes that have the placeholder in their environment, from outside: how many there are, and in how many of
 * these each text is in memory. That the placeholder is found shows that the value would have been.
 */
export function searchProcesses(texts: { readonly placeholder: string; readonly value: string }): {
  processes: number;
  placeholder: number;
  value: number;
} {
  const input = JSON.stringify(texts);
  return JSON.parse(execFileSync("/usr/bin/python3", ["-c", SEARCH], { input, encoding: "utf8" }));
}
