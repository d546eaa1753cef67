import type { SandboxClient } from "@agentfense/sdk";
import { type Call, type Command, command, type OptionGroups, type OptionsOf } from "../command.ts";
import { option } from "../option.ts";
import { json } from "../shared-options.ts";

/** How to reach a server. */
export const SERVER = [
  option({
    name: "endpoint",
    value: "URL",
    about: `the server (default: AGENTFENSE_ENDPOINT): http://127.0.0.1:9000 for one on this machine,
https:// is TLS, unix:/path a socket`,
  }),
  option({
    name: "api-key",
    value: "KEY",
    about: "better in AGENTFENSE_API_KEY: other users of this machine can see what is on a command line",
  }),
  option({
    name: "ca",
    value: "FILE",
    kind: "file",
    about: "certificates (PEM) to trust for https:// besides the usual ones",
  }),
] as const;

const OUTPUT = [json("JSON instead")] as const;

/**
 * What `--json` prints of the server's answers, each as REST would have given it:
 *
 * | form             |                                                                     |
 * | ---------------- | ------------------------------------------------------------------- |
 * | absent           | the last one                                                        |
 * | `all`            | a list of them                                                      |
 * | `{ list: name }` | a list of what is in this member of all of them; else the last one  |
 * | `own`            | nothing: the command prints for itself                              |
 */
export type JsonForm = "all" | "own" | { readonly list: string };

/** What the command says: a text for people, and its exit code; a number alone when it has printed for itself. */
export type Said = string | number | { readonly text: string; readonly code: number };

export interface Connected {
  readonly client: SandboxClient;
  /** Programs read what is printed. */
  readonly json: boolean;
  /** With `json`, those of the server so far, for a command that prints them as they come. */
  readonly answers: JsonObject[];
  /** We show the server a key, which says whose what we make is. */
  readonly hasKey: boolean;
}

export type JsonObject = Readonly<Record<string, unknown>>;

type ServerOptions<Groups extends OptionGroups> = readonly (
  | OptionsOf<Groups>[number]
  | (typeof SERVER)[number]
  | (typeof OUTPUT)[number]
)[];

type Definition<Groups extends OptionGroups, Takes extends readonly string[]> = Omit<
  Command,
  "options" | "takes" | "run"
> & {
  readonly options?: Groups;
  readonly takes?: Takes;
  readonly jsonForm?: JsonForm;
  /** Exit code of an error of the server; default 1. */
  readonly failureCode?: number;
  run(call: Call<ServerOptions<Groups>, Takes> & Connected): Promise<Said>;
};

/** A command against a server. The client of the SDK loads when it is called. */
export function serverCommand<
  const Groups extends OptionGroups = Record<never, never>,
  const Takes extends readonly string[] = [],
>(definition: Definition<Groups, Takes>): Command {
  const { run, jsonForm, failureCode, options, takes, ...about } = definition;
  return command({
    ...about,
    options: { ...options, Server: SERVER, Output: OUTPUT },
    takes: takes ?? [],
    async run(call) {
      const { withClient } = await import("./client.ts");
      const own = call as unknown as Call<ServerOptions<Groups>, Takes>;
      return await withClient(call.values, { jsonForm, failureCode }, (connected) => run({ ...own, ...connected }));
    },
  });
}

/** Whose something is: who the option says, else who the key says, else who we are on this machine. */
export async function ownerOf(hasKey: boolean, given: string | undefined): Promise<string> {
  if (given !== undefined || hasKey) return given ?? "";
  return (await import("node:os")).userInfo().username;
}
