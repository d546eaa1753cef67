import { UsageError } from "../command.ts";

/**
 * Options whose value may be left out, each with the value it then has. The value must follow `=`: in `--network host DIR`
 * nobody could tell a value from the directory.
 */
const IMPLIED: Readonly<Record<string, { readonly value: string; readonly allowed: readonly string[] }>> = {
  "--network": { value: "private", allowed: ["none", "filtered", "private", "host"] },
  "--apply": { value: "success", allowed: ["success", "always"] },
};

/** The same arguments with every left-out value filled in, for a parser that knows no optional values. */
export function fillImpliedValues(args: readonly string[]): string[] {
  return args.map((argument, index) => {
    const [option = "", ...rest] = argument.split("=");
    const implied = IMPLIED[option];
    if (implied === undefined) return argument;
    const next = args[index + 1];
    if (rest.length === 0) {
      if (next !== undefined && implied.allowed.includes(next)) throw new UsageError(`write ${option}=${next}`);
      return `${option}=${implied.value}`;
    }
    if (!implied.allowed.includes(rest.join("="))) {
      throw new UsageError(`${option} is one of ${implied.allowed.join(", ")}, not ${JSON.stringify(rest.join("="))}`);
    }
    return argument;
  });
}
