import { type DescMessage, type JsonValue, type MessageShape, toJson } from "@bufbuild/protobuf";
import { type Duration, durationMs, type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { print } from "../output.ts";

export { showSize } from "../size.ts";

// Answers of a server as text for people and JSON for programs. Every name in them may come from an agent.

/** The JSON that REST would have answered with. */
export function jsonOf<Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>): JsonValue {
  return toJson(schema, message, { alwaysEmitImplicit: true });
}

export async function printJson(value: unknown): Promise<void> {
  await print(`${JSON.stringify(value, undefined, 2)}\n`);
}

/** One object a line, for answers that have no end. */
export async function printJsonLine(value: unknown): Promise<void> {
  await print(`${JSON.stringify(value)}\n`);
}

export function showDuration(duration: Duration | undefined): string {
  return duration === undefined ? "" : `${durationMs(duration) / 1000} s`;
}

export function showTime(time: Timestamp | undefined): string {
  return time === undefined
    ? ""
    : timestampDate(time)
        .toISOString()
        .replace(/\.\d+Z$/, "Z");
}
