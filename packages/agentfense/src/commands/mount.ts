import { command } from "../command.ts";
import { UsageError } from "../failure.ts";
import { option } from "../option.ts";
import { byteSize, count, RULES } from "../shared-options.ts";

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
