import { LONG_NAME } from "./lower-tree.ts";
import type { Step } from "./operations.ts";

/** One seed that was asked for, or fresh ones: a test that always takes the same steps finds nothing new. */
export function seedsFor(count: number): number[] {
  const asked = Number(process.env.AGENTFENSE_SEED);
  if (Number.isInteger(asked) && asked > 0) return [asked];
  return Array.from({ length: count }, () => 1 + Math.floor(Math.random() * 1e9));
}

/**
 * An ordinary user who shuts a directory against himself is tested by cases of its own (test/conformance/posix): there the
 * engine, which the kernel leaves these checks to, sees neither an opendir nor whether a chmod came by path or descriptor.
 */
export function keepingOwnRights(step: Step): Step {
  if (!["chmod", "fchmod", "mkdir"].includes(step.name)) return step;
  return { ...step, args: step.args.map((argument) => (typeof argument === "number" ? argument | 0o700 : argument)) };
}

/** For a report. */
export function shown(step: Step): string {
  const args = step.args.map((argument) => {
    if (typeof argument === "object") return "path" in argument ? argument.path : `slot ${argument.slot}`;
    return typeof argument === "string" && argument.length > 40 ? `${argument.length} bytes` : String(argument);
  });
  const shownArgs = args.join(", ").replaceAll(LONG_NAME, "n…n");
  return `${step.name}(${shownArgs})${step.opens === undefined ? "" : ` as slot ${step.opens}`}`;
}
