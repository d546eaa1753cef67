import type { Log } from "../../log.ts";
import type { MetadataStore } from "../store.ts";
import { changeMethods } from "./changes.ts";
import { codebaseMethods } from "./codebases.ts";
import { Database, type DatabaseOptions } from "./database.ts";
import { eventMethods } from "./events.ts";
import { keyMethods, secretMethods } from "./keys.ts";
import { type Claim, Lease, type LeaseOptions, sessionName } from "./lease.ts";
import { migrate, schemaVersion } from "./migrations.ts";
import type { PostgresPlace } from "./place.ts";
import { retentionMethods } from "./retention.ts";
import { sandboxMethods } from "./sandboxes.ts";
import { snapshotMethods } from "./snapshots.ts";

export interface PostgresStoreOptions {
  readonly place: PostgresPlace;
  /** Instead of that of the place. */
  readonly password?: string | undefined;
  readonly log?: Log;
}

/** What one server asks at the same time. PostgreSQL has a process for each; more than its processors are of little use. */
const CONNECTIONS = 8;

/** A store that only its server writes. */
export interface LeasedStore {
  /** The caller's to close; that gives the lease back. */
  readonly store: MetadataStore;
  /** The server must end what it runs. */
  readonly lost: Promise<Error>;
}

/** The metadata in a PostgreSQL database, for the one server that acts on it. It is made there when it is not there. */
export async function openLeasedStore(
  options: PostgresStoreOptions & Pick<LeaseOptions, "leaseMs"> & { readonly claim: ClaimPlace },
): Promise<LeasedStore> {
  const { log = () => {}, leaseMs, claim } = options;
  await using undo = new AsyncDisposableStack();
  // A connection of its own: the renewal must not wait behind what others ask.
  const control = undo.use(await controlConnection(options));
  await migrate(control);
  const claimed = await claim(await placeOf(control));
  const lease = undo.use(await Lease.take(control, { ...claimed, leaseMs, log }));
  const database = undo.use(
    await Database.open({
      ...shared(options),
      connections: CONNECTIONS,
      session: { application_name: sessionName(lease.epoch), "agentfense.epoch": String(lease.epoch) },
      onFenced: () => lease.lose(),
    }),
  );
  const parts = undo.move();
  return { store: storeOf(database, parts), lost: lease.lost };
}

/** Makes sure that the server's directories are those of the database; `known` is what it knows them by, "" when it is new. */
export type ClaimPlace = (known: string) => Promise<Claim>;

/** For the command line, beside a server or without: keys can be changed, all else can be read. */
export async function openPostgresStore(
  options: PostgresStoreOptions & { readonly mustExist?: boolean },
): Promise<MetadataStore> {
  await using undo = new AsyncDisposableStack();
  const database = undo.use(await controlConnection(options));
  if (options.mustExist && (await schemaVersion(database)) === undefined) {
    throw new Error("no AgentFense has stored anything there");
  }
  await migrate(database);
  return storeOf(database, undo.move());
}

/** What PostgreSQL it is, and the version of the schema that is there; throws where it cannot be used. */
export async function examinePostgres(
  options: PostgresStoreOptions,
): Promise<{ readonly server: string; readonly schema: number | undefined }> {
  await using database = await controlConnection(options);
  const found = await database.get<{ server: string }>("SELECT current_setting('server_version') AS server");
  return { server: found?.server ?? "", schema: await schemaVersion(database) };
}

async function controlConnection(options: PostgresStoreOptions): Promise<Database> {
  return await Database.open({ ...shared(options), connections: 1, session: { application_name: "agentfense" } });
}

function shared({
  place,
  password,
  log = () => {},
}: PostgresStoreOptions): Omit<DatabaseOptions, "connections" | "session"> {
  return { place, password, log };
}

async function placeOf(database: Database): Promise<string> {
  return (await database.get<{ place: string }>("SELECT place FROM lease"))?.place ?? "";
}

function storeOf(database: Database, parts: AsyncDisposableStack): MetadataStore {
  return {
    ...codebaseMethods(database),
    ...changeMethods(database),
    ...retentionMethods(database),
    ...sandboxMethods(database),
    ...eventMethods(database),
    ...keyMethods(database),
    ...secretMethods(database),
    ...snapshotMethods(database),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}
