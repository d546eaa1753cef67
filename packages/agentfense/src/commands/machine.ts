import { DEFAULT_PRESET, POLICY_FILE } from "@agentfense/sdk/project";
import { allCommands, command } from "../command.ts";
import { UsageError } from "../command-failure.ts";
import { PURPOSES, type PurposeName } from "../init/purposes.ts";
import { option } from "../option.ts";
import { print } from "../output.ts";
import { byteSize, CONFIGURATION, count, json, preset, RULES, RUNTIMES } from "../shared-options.ts";
import { printable } from "../terminal.ts";

export const doctor = command({
  name: "doctor",
  about: `Looks at what this machine has for running sandboxes, one line a check: ✓ all is well, ! weaker, slower or optional,
✗ needed and missing; behind the arrow, how to fix it. Changes nothing. Run it as the user who will run sandboxes. With the
configuration of a server, also at the PostgreSQL that it names.`,
  options: {
    "": [
      ...CONFIGURATION,
      option({ name: "runtime", value: "NAME", words: RUNTIMES, about: "only what bwrap or docker needs" }),
      json("one JSON object instead: { working, findings: [{ check, verdict, summary, fix, concerns, blocks }] }"),
    ],
  },
  notes: "Exit codes: 0 when bwrap or docker works (with --runtime: that one) and the database, 1 when not.",
  run: async ({ values }) => await (await import("../doctor.ts")).doctor(values),
});

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

const SHELLS = ["bash", "zsh", "fish"];

export const completion = command({
  name: "completion",
  usage: SHELLS.join("|"),
  about: `Prints a script that makes your shell complete the commands of agentfense, their options and the values of those. Load it
when the shell starts:
  bash   echo 'source <(agentfense completion bash)' >> ~/.bashrc
  zsh    echo 'source <(agentfense completion zsh)' >> ~/.zshrc      (after compinit)
  fish   agentfense completion fish > ~/.config/fish/completions/agentfense.fish`,
  takes: ["SHELL"],
  wants: `a shell: ${SHELLS.join(", ")}`,
  completes: SHELLS,
  async run({ given: [shell], families }) {
    const { SCRIPTS } = await import("../completion.ts");
    if (!Object.hasOwn(SCRIPTS, shell)) {
      throw new UsageError(`no completion for ${printable(shell)}; there are: ${SHELLS.join(", ")}`, {
        slip: { given: shell, known: SHELLS },
      });
    }
    await print(SCRIPTS[shell]!(families, await allCommands(families)));
  },
});

export const mount = command({
  name: "mount",
  about: `Shows DIR at MOUNTPOINT as the rules allow, and keeps what is written there in a delta; DIR itself is never written.
Stays in the foreground and prints one line when ready. SIGINT or SIGTERM unmounts; a second one does not wait for
processes that still use the mount.`,
  options: {
    Rules: RULES,
    Writes: [
      option({
        name: "delta",
        value: "DIR",
        kind: "directory",
        about:
          "keep the changes here (made if absent); without it they go to a temporary directory and are lost at the end",
      }),
      option({
        name: "quota",
        value: "SIZE",
        about: "the most the delta may hold: 512m, 1g or bytes",
        parse: byteSize,
      }),
      option({ name: "quota-files", value: "N", about: "the most entries the delta may hold", parse: count }),
    ],
    Other: [
      option({ name: "owner", value: "UID:GID", about: "show every entry as owned by this user", parse: owner }),
      option({ name: "events", about: "print each refusal to stderr, one JSON object a line" }),
      option({
        name: "passthrough",
        isOn: true,
        about: "serve reads and writes here instead of letting the kernel go to the files directly",
      }),
      option({ name: "xattrs", isOn: true, about: "no extended attributes" }),
    ],
  },
  takes: ["DIR", "MOUNTPOINT"],
  wants: "DIR and MOUNTPOINT",
  completes: "directory",
  run: async ({ values, given }) => await (await import("../mount/mount.ts")).mount(values, given),
});

/** `UID:GID`, both numbers. */
function owner(text: string, spelling: string): { readonly uid: number; readonly gid: number } {
  const [, uid, gid] = /^(\d{1,10}):(\d{1,10})$/.exec(text) ?? [];
  const numbers = { uid: Number(uid), gid: Number(gid) };
  // 2³² − 1 means "no change" to the kernel and is nobody's number.
  if (numbers.uid < 0xffff_ffff && numbers.gid < 0xffff_ffff) return numbers;
  throw new UsageError(`${spelling} takes UID:GID, two numbers such as 1000:1000, not ${JSON.stringify(text)}`);
}
