import { isUtf8 } from "node:buffer";
import {
  type ExecOutputSchema,
  type ExecRequest,
  type ExecResultSchema,
  ExecOutput_OutputType as OutputType,
} from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ExecAnswer, ExecCall, ExecEnd } from "../../../runtime/sandboxes/api.ts";
import { durationMessage, durationMs, given, invalid, required } from "./fields.ts";

export function execCallOf(message: ExecRequest, signal: AbortSignal): ExecCall {
  return {
    command: commandOf(message),
    env: message.env,
    workdir: message.workdir,
    signal,
    ...given({ stdin: stdinOf(message), timeoutMs: durationMs(message.timeout, "timeout") }),
  };
}

export function commandOf({ command, argv }: Pick<ExecRequest, "command" | "argv">): string | readonly string[] {
  if (argv.length === 0) return required(command, "command");
  if (command !== "") throw invalid("command and argv exclude each other");
  required(argv[0] ?? "", "argv[0]");
  return argv;
}

function stdinOf({ stdin, stdinBytes }: ExecRequest): Uint8Array | undefined {
  if (stdin !== "" && stdinBytes.length > 0) throw invalid("stdin and stdin_bytes exclude each other");
  if (stdin !== "") return Buffer.from(stdin, "utf8");
  return stdinBytes.length > 0 ? stdinBytes : undefined;
}

/** How much of a command's output one message may hold, and which end of it is kept. */
export interface OutputRoom {
  readonly bytes: number;
  readonly keep: "beginning" | "end";
}

export function execResultMessage(answer: ExecAnswer, room: OutputRoom): MessageInitShape<typeof ExecResultSchema> {
  // Half for each stream, and what one leaves over for the other.
  const half = (room.bytes * 3) / 8;
  const stdout = outputText(answer.stdout, { ...room, bytes: 2 * half - Math.min(sizeOf(answer.stderr), half) });
  const stderr = outputText(answer.stderr, { ...room, bytes: 2 * half - Math.min(sizeOf(answer.stdout), half) });
  return {
    ...endMembers(answer, room.bytes / 4),
    stdout: stdout.text,
    stderr: stderr.text,
    stdoutBytes: stdout.exact,
    stderrBytes: stderr.exact,
    truncated: answer.truncated || stdout.cut || stderr.cut,
  };
}

export function outputMessage(kind: "stdout" | "stderr", data: Uint8Array): MessageInitShape<typeof ExecOutputSchema> {
  return { type: kind === "stdout" ? OutputType.STDOUT : OutputType.STDERR, data };
}

/**
 * How a command ended; also the last message of a stream. A command that ran out of time ends its stream like any other, with
 * `timed_out` and the exit code: all output has arrived by then, and an error would only take the facts away.
 */
export function endMembers(end: ExecEnd, roomForProblems: number) {
  return {
    exitCode: end.exitCode,
    signal: end.signal ?? "",
    timedOut: end.timedOut,
    duration: durationMessage(end.durationMs),
    outOfMemory: end.outOfMemory,
    sessionClosed: end.sessionClosed,
    syncedVersion: BigInt(end.syncedVersion),
    syncProblems: fitting(end.syncProblems, roomForProblems),
  };
}

/** As many of the sentences as fit, and how many more there are. */
export function fitting(sentences: readonly string[], bytes: number): string[] {
  let used = 0;
  const count = sentences.findIndex((sentence) => {
    used += Buffer.byteLength(sentence) + 8;
    return used > bytes;
  });
  if (count < 0) return [...sentences];
  return [...sentences.slice(0, count), `and ${sentences.length - count} more`];
}

interface OutputText {
  readonly text: string;
  /** The bytes themselves, when text cannot hold them; else empty. */
  readonly exact: Uint8Array;
  readonly cut: boolean;
}

function outputText(output: Buffer, room: OutputRoom): OutputText {
  const kept = sizeOf(output) <= room.bytes ? output : cutTo(output, room);
  const cut = kept.length < output.length;
  return { text: kept.toString("utf8"), exact: isUtf8(kept) ? new Uint8Array() : kept, cut };
}

/** In a message. Bytes that are no text travel twice: as they are, and with three bytes of U+FFFD for each that is wrong. */
function sizeOf(output: Buffer): number {
  return isUtf8(output) ? output.length : output.length + Buffer.byteLength(output.toString("utf8"));
}

function cutTo(output: Buffer, { bytes, keep }: OutputRoom): Buffer {
  const text = isUtf8(output);
  const length = Math.max(0, Math.floor(text ? bytes : bytes / 4));
  if (keep === "beginning") {
    let end = length;
    while (text && end > 0 && isContinuation(output[end])) end--;
    return output.subarray(0, end);
  }
  let start = output.length - length;
  while (text && start < output.length && isContinuation(output[start])) start++;
  return output.subarray(start);
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
