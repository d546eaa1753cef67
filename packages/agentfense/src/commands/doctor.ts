import { command } from "../command.ts";
import { option } from "../option.ts";
import { json, RUNTIMES } from "../shared-options.ts";

export const doctor = command({
  name: "doctor",
  about: `Looks at what this machine has for running sandboxes, one line a check: ✓ all is well, ! weaker, slower or optional,
✗ needed and missing; behind the arrow, how to fix it. Changes nothing. Run it as the user who will run sandboxes.`,
  options: {
    "": [
      option({ name: "runtime", value: "NAME", words: RUNTIMES, about: "only what bwrap or docker needs" }),
      json("one JSON object instead: { working, findings: [{ check, verdict, summary, fix, concerns, blocks }] }"),
    ],
  },
  notes: "Exit codes: 0 when bwrap or docker works (with --runtime: that one), 1 when not.",
  run: async ({ values }) => await (await import("../doctor.ts")).doctor(values),
});
