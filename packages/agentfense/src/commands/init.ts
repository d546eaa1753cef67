import { DEFAULT_PRESET, POLICY_FILE } from "@agentfense/sdk/project";
import { command } from "../command.ts";
import { PURPOSES, type PurposeName } from "../init/purposes.ts";
import { option } from "../option.ts";
import { preset } from "../shared-options.ts";

const purposeLines = Object.entries(PURPOSES).map(([name, { description }]) => `  ${name.padEnd(13)}${description}`);

export const init = command({
  name: "init",
  about: `Looks at the project in DIR (default: where you are) and writes ${POLICY_FILE} for it: a preset, places where builds write,
and what looks like a secret by its name or its content, hidden; each with the reason. Then checks the result as policy lint
does. Follows no link, changes nothing else.`,
  options: {
    "": [
      option({
        name: "for",
        value: "PURPOSE",
        words: Object.keys(PURPOSES) as PurposeName[],
        about: ["what agents are to do here; asked for at a terminal:", ...purposeLines].join("\n"),
      }),
      preset(`the rules to begin with instead (default ${DEFAULT_PRESET}):`),
      option({ name: "force", about: `replace a ${POLICY_FILE} that is there already` }),
      option({ name: "stdout", about: "print it and write nothing" }),
    ],
  },
  takes: ["[DIR]"],
  wants: "one directory",
  completes: "directory",
  notes: "Exit codes: 0, or 1 if a secret can be read all the same.",
  run: async ({ values, given: [directory] }) => await (await import("../init/init.ts")).init(values, directory),
});
