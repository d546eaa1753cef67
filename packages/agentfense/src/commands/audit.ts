import type { AuditEvent } from "@agentfense/sdk";
import { command } from "../command.ts";
import { CommandFailure, UsageError } from "../command-failure.ts";
import { option } from "../option.ts";
import { print, printJson, printJsonLine } from "../output.ts";
import { type JsonObject, serverCommand } from "../remote/command.ts";
import { CONFIGURATION, count, duration, json } from "../shared-options.ts";
import { paintFor, printable } from "../terminal.ts";
import { showTime } from "../wording.ts";

const FILTER = [
  option({ name: "sandbox", value: "ID", about: "only about this sandbox" }),
  option({ name: "codebase", value: "ID", about: "only about this codebase" }),
  option({ name: "owner", value: "OWNER", about: "only about this owner's" }),
  option({
    name: "type",
    value: "TYPE",
    isRepeated: true,
    about: "only of this type, such as permission_denied (may be repeated)",
  }),
] as const;

function filterOf(values: {
  readonly sandbox?: string | undefined;
  readonly codebase?: string | undefined;
  readonly owner?: string | undefined;
  readonly type?: readonly string[] | undefined;
}) {
  return { sandboxId: values.sandbox, codebaseId: values.codebase, ownerId: values.owner, types: values.type };
}

/** A date (2026-02-03, 2026-02-03T10:15:30Z), or how long ago (30s, 10m, 2h). */
function moment(text: string, spelling: string): Date {
  if (/^\d+(\.\d+)?(ms|s|m|h)$/.test(text)) return new Date(Date.now() - duration(text, spelling));
  const ms = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d)?)?$/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(ms)) return new Date(ms);
  throw new UsageError(
    `${spelling} takes a time such as 2026-02-03T10:15:30Z, or 2h for that long ago, not ${JSON.stringify(text)}`,
  );
}

const list = serverCommand({
  name: "audit list",
  summary: "events of the audit log",
  about:
    "The events of the audit log, oldest first, one a line: number, time, level, type, whom it is about, and its facts.",
  options: {
    "": [
      ...FILTER,
      option({
        name: "since",
        value: "TIME",
        about: "from 2026-02-03T10:15:30Z on, or 2h for that long ago",
        parse: moment,
      }),
      option({ name: "until", value: "TIME", about: "before that", parse: moment }),
      option({ name: "follow", about: "then what happens, until interrupted" }),
    ],
  },
  async run({ client, values, json: asJson, answers }) {
    const { since: after, until: before, follow } = values;
    if (follow && before !== undefined) throw new UsageError("--follow has no end; leave out --until");
    const told = toldEvents(answers);
    let last = 0;
    for await (const event of client.listEvents({ ...filterOf(values), after, before, pageSize: 1000 })) {
      await tell(event, asJson ? told.next().value : undefined);
      last = event.sequence;
    }
    if (!follow) return 0;
    // From the last one on, so that nothing between the list and the watch is missed.
    for await (const event of client.watchEvents({ ...filterOf(values), afterSequence: last })) {
      const answer = asJson ? told.next().value : undefined;
      if (after === undefined || event.time >= after) await tell(event, answer);
    }
    return 0;
  },
});

const watch = serverCommand({
  name: "audit watch",
  summary: "events of the audit log as they happen",
  about: "The events of the audit log as they happen, until interrupted. With --json, one object a line.",
  options: {
    "": [
      ...FILTER,
      option({
        name: "after",
        value: "NUMBER",
        about: "begin after the event with this number instead of with what happens next",
        parse: count,
      }),
    ],
  },
  async run({ client, values, json: asJson, answers }) {
    const told = toldEvents(answers);
    for await (const event of client.watchEvents({ ...filterOf(values), afterSequence: values.after })) {
      await tell(event, asJson ? told.next().value : undefined);
    }
    return 0;
  },
});

const verify = command({
  name: "audit verify",
  summary: "whether the stored audit log is whole",
  about: `Reads the audit log in the database of the configuration from its beginning to its end, and checks that every event is there
and as it was written: each has a hash over itself and the one before. A server may be running on it.`,
  options: { "": [...CONFIGURATION, json("{ ok, events } or { ok, sequence, reason } instead")] },
  notes: "Exit codes: 0 when it is whole, 1 when it is not, 2 for a mistake in the settings.",
  async run({ values }) {
    const { readConfiguration } = await import("../serve/configuration.ts");
    const { config } = await readConfiguration(values, process.env);
    const { openStore, verifyAudit } = await import("@agentfense/server/runtime");
    // An empty log, which opening would make, is whole.
    await using store = await openStore(config.storage, { mustExist: true }).catch((error: Error) => {
      throw new CommandFailure(error.message, { hint: "is this the server's configuration? give it with --config" });
    });
    const verdict = await verifyAudit(store);
    if (values.json) await printJson(verdict);
    else if (verdict.ok) await print(`the audit log is whole: ${verdict.events} event(s)\n`);
    else await print(`the audit log was changed: event ${verdict.sequence}: ${verdict.reason}\n`);
    return verdict.ok ? 0 : 1;
  },
});

export const AUDIT = [list, watch, verify];

/** The events in the answers of a server as they come: in pages, or each alone. */
function* toldEvents(answers: JsonObject[]): Generator<unknown, undefined> {
  for (;;) {
    const { events, ...event } = answers.shift() ?? {};
    if (Array.isArray(events)) yield* events;
    else yield event;
  }
}

async function tell(event: AuditEvent, answer: unknown): Promise<void> {
  await (answer === undefined ? print(`${eventLine(event)}\n`) : printJsonLine(answer));
}

/** "12 2026-02-03T10:15:30Z warn permission_denied sb_… path=/.env": what an agent made up in it is escaped. */
function eventLine(event: AuditEvent): string {
  const { sequence, time, level, type, ownerId, sandboxId, codebaseId, sessionId, data } = event;
  const paint = paintFor(process.stdout, process.env);
  const style = level === "warn" ? "doubtful" : level === "error" ? "bad" : undefined;
  const shownLevel = style === undefined ? level.padEnd(5) : paint(style, level.padEnd(5));
  const facts = Object.entries(data).map(
    ([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  const about = [type, ownerId, sandboxId || codebaseId, sessionId, ...facts].filter((word) => word !== "");
  return [String(sequence), showTime(time), shownLevel, ...about.map(printable)].join("  ");
}
