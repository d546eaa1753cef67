import { UsageError } from "../command.ts";
import { chooseEndpoint, ENDPOINT_HELP, ENDPOINT_OPTIONS } from "../remote/endpoint.ts";
import type { KeyKeeper } from "./keeper.ts";

export const KEEPER_OPTIONS = {
  ...ENDPOINT_OPTIONS,
  config: { type: "string" },
  set: { type: "string", multiple: true },
} as const;

export const KEEPER_HELP = `Without --endpoint and AGENTFENSE_ENDPOINT, or with --config, this works on the database of the configuration itself; so
the first key is made before the server runs. With an endpoint it asks the server, which takes a key of an administrator.

  --config FILE     the server's settings (default: AGENTFENSE_CONFIG, else none); --set KEY=VALUE as with serve
${ENDPOINT_HELP}`;

type Values = Parameters<typeof chooseEndpoint>[0] & {
  readonly config?: string | undefined;
  readonly set?: readonly string[] | undefined;
};

export async function openKeeper(values: Values, environment: NodeJS.ProcessEnv): Promise<KeyKeeper> {
  const local = values.config !== undefined || values.set !== undefined;
  if (local && values.endpoint !== undefined) throw new UsageError("give --config or --endpoint, not both");
  const remote = !local && (values.endpoint !== undefined || Boolean(environment.AGENTFENSE_ENDPOINT));
  // Each side loads only what it needs: an endpoint no engine, a database no network.
  if (remote) {
    const { openServerKeeper } = await import("./server-keeper.ts");
    return openServerKeeper(await chooseEndpoint(values, environment));
  }
  const [{ openStoreKeeper }, { readConfiguration }] = await Promise.all([
    import("./store-keeper.ts"),
    import("../serve/configuration.ts"),
  ]);
  const { config } = await readConfiguration({ config: values.config, set: values.set }, environment);
  return await openStoreKeeper(config.storage.db_path);
}
