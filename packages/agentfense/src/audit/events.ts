import { type Event, EventSchema } from "@agentfense/protocol/event";
import { print } from "../output.ts";
import { jsonOf, printJsonLine, showTime } from "../remote/show.ts";
import { type Paint, paintFor, printable, type Style } from "../terminal.ts";

/** The filters that listing and watching have in common, for `parseArguments`. */
export const FILTER_OPTIONS = {
  sandbox: { type: "string" },
  codebase: { type: "string" },
  owner: { type: "string" },
  type: { type: "string", multiple: true },
} as const;

export const FILTER_HELP = `  --sandbox ID      only about this sandbox
  --codebase ID     only about this codebase
  --owner OWNER     only about this owner's
  --type TYPE       only of this type, such as permission_denied (may be repeated)`;

export function readFilter(values: {
  readonly sandbox?: string | undefined;
  readonly codebase?: string | undefined;
  readonly owner?: string | undefined;
  readonly type?: readonly string[] | undefined;
}) {
  return {
    sandboxId: values.sandbox ?? "",
    codebaseId: values.codebase ?? "",
    ownerId: values.owner ?? "",
    types: [...(values.type ?? [])],
  };
}

export async function printEvent(event: Event, json: boolean): Promise<void> {
  await (json ? printJsonLine(jsonOf(EventSchema, event)) : print(`${eventLine(event)}\n`));
}

/** "12 2026-02-03T10:15:30Z warn permission_denied sb_… path=/.env": what an agent made up in it is escaped. */
function eventLine(event: Event): string {
  const subjects = [event.ownerId, event.sandboxId || event.codebaseId, event.sessionId];
  const facts = Object.entries(event.data ?? {}).map(
    ([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  const words = [
    String(event.sequence),
    showTime(event.time),
    event.level.padEnd(5),
    event.type,
    ...subjects,
    ...facts,
  ];
  const paint = paintFor(process.stdout, process.env);
  return words
    .filter((word) => word !== "")
    .map((word) => paintWord(printable(word), paint))
    .join("  ");
}

const LEVEL_STYLES: Readonly<Record<string, Style>> = { "warn ": "doubtful", error: "bad" };

function paintWord(word: string, paint: Paint): string {
  const style = LEVEL_STYLES[word];
  return style === undefined ? word : paint(style, word);
}
