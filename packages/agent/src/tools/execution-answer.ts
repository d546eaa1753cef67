import { Buffer } from "node:buffer";
import { keepEnds } from "@agentfense/sdk/tool-kit";
import type { ExecutionResult, FailureCode, RichOutput } from "../types.ts";
import type { ToolImage, ToolResult } from "./tool.ts";

/** Code that did something wrong was run all the same, and its output says what it was. */
const WAS_RUN: ReadonlySet<FailureCode> = new Set<FailureCode>(["EXIT_CODE", "TIMEOUT", "OUT_OF_MEMORY"]);

const MOST_IMAGES = 4;
const LARGEST_IMAGE_CHARACTERS = 4 * 1024 * 1024;

/** What is told of an execution. */
export function executionAnswer(result: ExecutionResult, maxOutput: number): ToolResult {
  const { exitCode, sandboxType, risk, durationMs, timedOut, outOfMemory, truncated, success, errorCode } = result;
  const isError = !success && (errorCode === undefined || !WAS_RUN.has(errorCode));
  const output = keepEnds(outputOf(result), maxOutput);
  const remarks = isError ? [result.error ?? "it was not run"] : remarksOn(result);
  const data = { exitCode, sandboxType, risk, durationMs, timedOut, outOfMemory, truncated, success, errorCode };
  const images = imagesIn(result.results ?? []);
  return {
    text: [...(output === "" ? [] : [output]), ...remarks].join("\n") || "(no output)",
    isError,
    data,
    ...(images.length > 0 && { images }),
  };
}

function outputOf({ stdout, stderr }: ExecutionResult): string {
  const parts = [stdout.trimEnd(), stderr === "" ? "" : `[stderr]\n${stderr.trimEnd()}`];
  return parts.filter((part) => part !== "").join("\n");
}

function remarksOn({ success, truncated, outOfMemory, timedOut, durationMs, exitCode }: ExecutionResult): string[] {
  return [
    ...(truncated ? ["[some output was beyond the limit and is lost]"] : []),
    ...(outOfMemory ? ["[it ran out of memory]"] : []),
    ...(timedOut ? [`[ended after ${Math.round(durationMs)} ms: its time was up]`] : []),
    ...(success || timedOut ? [] : [`[exit code ${exitCode}]`]),
  ];
}

function imagesIn(results: readonly RichOutput[]): ToolImage[] {
  return results
    .flatMap(({ data }) => data["image/png"] ?? [])
    .filter((base64) => base64.length <= LARGEST_IMAGE_CHARACTERS)
    .slice(0, MOST_IMAGES)
    .map((base64) => ({ data: Buffer.from(base64, "base64"), mimeType: "image/png" }));
}
