import { type Command, parseArguments, UsageError } from "../command.ts";
import { printable } from "../terminal.ts";
import { chooseEndpoint, ENDPOINT_HELP, ENDPOINT_OPTIONS } from "./endpoint.ts";
import { explainingFailures } from "./failure.ts";
import { connectTo, type Server } from "./server.ts";

export type OptionsConfig = NonNullable<Parameters<typeof parseArguments>[1]>;

/** What a command against a server is: its words, what it takes, and what it does with a connection. */
interface Definition<Options extends OptionsConfig, Names extends readonly string[]> {
  /** "sandbox show" */
  readonly name: string;
  /** Everything but the options that all such commands have. */
  readonly help: string;
  readonly options?: Options;
  /** Arguments that must be there: ["SANDBOX"]. */
  readonly takes: Names;
  /** Arguments that may follow, and how many of them must and can. */
  readonly more?: { readonly name: string; readonly atLeast?: number; readonly atMost?: number };
  /** What follows -- is a command for somebody else, and must be there. */
  readonly passesCommand?: true;
  readonly handlesClosedOutput?: true;
  /** Exit code of an error of the server; default 1. */
  readonly failureCode?: number;
  /** Gives the exit code; nothing is 0. */
  run(call: Call<Options, Names>): Promise<number | undefined>;
}

export interface Call<Options extends OptionsConfig, Names extends readonly string[]> {
  readonly server: Server;
  readonly values: ReturnType<typeof parseArguments<Options>>["values"];
  readonly json: boolean;
  readonly given: { readonly [Name in keyof Names]: string };
  readonly more: readonly string[];
  readonly command: readonly string[];
}

export function remoteCommand<const Options extends OptionsConfig, const Names extends readonly string[]>(
  definition: Definition<Options, Names>,
): Command {
  return {
    help: `${definition.help}
Server:
${ENDPOINT_HELP}

  --json            JSON instead
  -h, --help        this text
`,
    ...(definition.handlesClosedOutput && { handlesClosedOutput: true }),
    run: (args) => runRemote(definition, args),
  };
}

async function runRemote<Options extends OptionsConfig, Names extends readonly string[]>(
  definition: Definition<Options, Names>,
  args: readonly string[],
): Promise<number> {
  const { own, command } = definition.passesCommand ? splitCommand(definition.name, args) : { own: args, command: [] };
  const options = { ...definition.options, ...ENDPOINT_OPTIONS, json: { type: "boolean" } } as const;
  const { values, positionals } = parseArguments(own, options);
  const { given, more } = splitArguments(definition, positionals);
  // Node's types cannot tell the common options apart once others are mixed in.
  const common = values as ReturnType<typeof parseArguments<typeof ENDPOINT_OPTIONS>>["values"] & { json?: boolean };
  const endpoint = await chooseEndpoint(common, process.env);
  using server = connectTo(endpoint);
  const call = { server, values, json: common.json === true, given, more, command } as unknown as Call<Options, Names>;
  return (await explainingFailures(server.url, () => definition.run(call), definition.failureCode)) ?? 0;
}

function splitCommand(name: string, args: readonly string[]) {
  const separator = args.indexOf("--");
  const command = separator < 0 ? [] : args.slice(separator + 1);
  if (command.length === 0 || command[0] === "") throw new UsageError(`${name} takes a command after --`);
  return { own: args.slice(0, separator), command };
}

function splitArguments(
  { name, takes, more }: Pick<Definition<OptionsConfig, readonly string[]>, "name" | "takes" | "more">,
  positionals: readonly string[],
) {
  const least = takes.length + (more?.atLeast ?? 0);
  const most = takes.length + (more === undefined ? 0 : (more.atMost ?? Number.POSITIVE_INFINITY));
  if (positionals.length < least || positionals.length > most) {
    const wanted = [...takes, ...(more === undefined ? [] : [describeMore(more)])].join(" ") || "no arguments";
    const got = positionals.length === 0 ? "nothing" : positionals.map(printable).join(" ");
    throw new UsageError(`${name} takes ${wanted}, not ${got}`);
  }
  return { given: positionals.slice(0, takes.length), more: positionals.slice(takes.length) };
}

function describeMore({ name, atLeast = 0, atMost }: { name: string; atLeast?: number; atMost?: number }): string {
  const repeated = atMost === 1 ? name : `${name}…`;
  return atLeast > 0 ? repeated : `[${repeated}]`;
}
