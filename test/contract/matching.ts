import { Buffer } from "node:buffer";
import { isDeepStrictEqual } from "node:util";

type Problem = string | undefined;

/**
 * What an expectation says about a value.
 *
 * | expectation                | is met by                                                       |
 * | -------------------------- | --------------------------------------------------------------- |
 * | a string, number, boolean  | the same                                                        |
 * | a list                     | a list as long, item by item                                    |
 * | { contains: text }         | a string with this text in it                                   |
 * | { matches: pattern }       | a string that matches                                           |
 * | { atLeast: n }             | a number not below                                              |
 * | { bytes: hex }             | these bytes                                                     |
 * | { includes: [a, b] }       | a list with items that meet a and b, in this order, among others |
 * | any other map              | an object whose named properties meet theirs                    |
 */
export function mismatch(value: unknown, expected: unknown, path = "result"): Problem {
  if (Array.isArray(expected)) return listMismatch(value, expected, path);
  if (typeof expected !== "object" || expected === null) {
    return isDeepStrictEqual(value, expected) ? undefined : differs(path, value, JSON.stringify(expected));
  }
  const [[word, operand] = ["", undefined], ...more] = Object.entries(expected);
  const special = more.length === 0 ? SPECIAL[word] : undefined;
  return special === undefined ? objectMismatch(value, expected, path) : special(value, operand, path);
}

const SPECIAL: Readonly<Record<string, (value: unknown, operand: unknown, path: string) => Problem>> = {
  contains: (value, operand, path) =>
    typeof value === "string" && value.includes(String(operand))
      ? undefined
      : differs(path, value, `a text with ${operand}`),
  matches: (value, operand, path) =>
    typeof value === "string" && new RegExp(String(operand)).test(value)
      ? undefined
      : differs(path, value, String(operand)),
  atLeast: (value, operand, path) =>
    typeof value === "number" && value >= Number(operand) ? undefined : differs(path, value, `at least ${operand}`),
  bytes: (value, operand, path) =>
    value instanceof Uint8Array && Buffer.from(value).toString("hex") === operand
      ? undefined
      : differs(path, value, `the bytes ${operand}`),
  includes: (value, operand, path) => {
    if (!Array.isArray(value) || !Array.isArray(operand)) return differs(path, value, "a list");
    let from = 0;
    for (const item of operand) {
      const at = value.findIndex((each, index) => index >= from && mismatch(each, item) === undefined);
      if (at < 0) return differs(path, value, `an item like ${JSON.stringify(item)}`);
      from = at + 1;
    }
    return undefined;
  },
};

function listMismatch(value: unknown, expected: readonly unknown[], path: string): Problem {
  if (!Array.isArray(value) || value.length !== expected.length) {
    return differs(path, value, `${expected.length} items: ${JSON.stringify(expected)}`);
  }
  return firstProblem(expected.map((item, index) => () => mismatch(value[index], item, `${path}[${index}]`)));
}

function objectMismatch(value: unknown, expected: object, path: string): Problem {
  if (typeof value !== "object" || value === null) return differs(path, value, JSON.stringify(expected));
  return firstProblem(
    Object.entries(expected).map(
      ([name, item]) =>
        () =>
          mismatch((value as Record<string, unknown>)[name], item, `${path}.${name}`),
    ),
  );
}

function firstProblem(checks: readonly (() => Problem)[]): Problem {
  for (const check of checks) {
    const problem = check();
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function differs(path: string, value: unknown, wanted: string): string {
  return `${path} is ${value instanceof Error ? String(value) : JSON.stringify(value)}, not ${wanted}`;
}
