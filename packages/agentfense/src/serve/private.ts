import { fstatSync } from "node:fs";
import { access, constants, realpath, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { fitsSocket } from "@agentfense/server";
import type { LoadedConfiguration, ServerConfig } from "@agentfense/server/configuration";
import { TemporaryHome } from "@agentfense/server/isolation";
import { CommandFailure, UsageError } from "../command-failure.ts";
import { readConfiguration, type SettingValues } from "./configuration.ts";

// A private server belongs to the program that starts it: nobody else can reach it, it keeps nothing, and it ends with the
// program, however that ends.

/** Where it listens, who may call and where things are stored are its own business. */
const OWN_SETTINGS = /^(?:server\..+|auth\.keys|storage\.(?:(?:codebase|mount|db)_path|database\w*))$/;

/** The same in the environment, and the file named there: they are meant for another server of this user. */
const OTHERS_VARIABLES =
  /^AGENTFENSE_(?:SERVER_.+|AUTH_KEYS|STORAGE_(?:CODEBASE|MOUNT|DB)_PATH|STORAGE_DATABASE\w*|CONFIG)$/;

/** What is given for a private server; a setting that is its own business is a usage error. */
export async function readPrivateConfiguration(
  values: SettingValues,
  environment: NodeJS.ProcessEnv,
): Promise<LoadedConfiguration> {
  const own = Object.entries(environment).filter(([name]) => !OTHERS_VARIABLES.test(name));
  const loaded = await readConfiguration(values, Object.fromEntries(own));
  const refused = Object.entries(loaded.origins).find(([name, from]) => OWN_SETTINGS.test(name) && from !== "default");
  if (refused === undefined) return loaded;
  const [name, from] = refused;
  throw new UsageError(`a private server decides ${name} itself: leave out ${from.replace(/^(?:flag|file) /, "")}`);
}

const STANDARD_INPUT = 0;

/** The server ends with its input, so that must be something whose other end a program can hold. */
export function requireProgramAtInput(): void {
  const input = fstatSync(STANDARD_INPUT);
  if (input.isFIFO() || input.isSocket()) return;
  throw new UsageError("with --private standard input must be a pipe or a socket: the server ends when it does", {
    hint: "let the program that starts it keep a pipe to its standard input open",
  });
}

/** The directories of a private server (0700), which go with it: one for what it stores, one for its socket. */
export class PrivateHome implements AsyncDisposable {
  readonly #parts: AsyncDisposableStack;
  readonly #state: string;
  readonly #socket: string;

  private constructor(parts: AsyncDisposableStack, state: string, socket: string) {
    this.#parts = parts;
    this.#state = state;
    this.#socket = socket;
  }

  static async create(environment: NodeJS.ProcessEnv): Promise<PrivateHome> {
    await using undo = new AsyncDisposableStack();
    const state = undo.use(await TemporaryHome.create({ prefix: `${PREFIX}state-` }));
    const parent = await socketParent(environment);
    const door = undo.use(await TemporaryHome.create({ prefix: PREFIX_OF_SOCKETS, parent }));
    return new PrivateHome(undo.move(), state.path, join(door.path, SOCKET));
  }

  /**
   * The configuration of the server that lives here. Its only client is one program, so the limits that keep clients from one
   * another, and those of time, are off unless somebody set them.
   */
  configuration({ config, origins }: LoadedConfiguration): ServerConfig {
    const isSet = (name: string): boolean => origins[name] !== "default";
    const unlessSet = <Value>(name: string, value: Value, set: Value): Value => (isSet(name) ? set : value);
    const { limits, sandbox, runtime } = config;
    return {
      ...config,
      server: { ...config.server, grpc_addr: `unix:${this.#socket}`, http_addr: "", metrics_addr: "" },
      storage: {
        ...config.storage,
        codebase_path: join(this.#state, "codebases"),
        mount_path: join(this.#state, "mounts"),
        db_path: join(this.#state, "metadata.db"),
        database: "",
      },
      limits: {
        ...limits,
        requests_per_second: unlessSet("limits.requests_per_second", 0, limits.requests_per_second),
        concurrent_calls: unlessSet("limits.concurrent_calls", 0, limits.concurrent_calls),
        sessions_per_sandbox: unlessSet("limits.sessions_per_sandbox", 0, limits.sessions_per_sandbox),
      },
      sandbox: {
        ...sandbox,
        max_per_user: unlessSet("sandbox.max_per_user", 0, sandbox.max_per_user),
        default_expiration: unlessSet("sandbox.default_expiration", 0, sandbox.default_expiration),
      },
      runtime: {
        ...runtime,
        types: unlessSet("runtime.types", ["bwrap", "docker"], runtime.types),
        docker: {
          ...runtime.docker,
          enable_networking: unlessSet("runtime.docker.enable_networking", true, runtime.docker.enable_networking),
        },
        networks: unlessSet("runtime.networks", ["none", "filtered", "private"], runtime.networks),
        ...(isSet("runtime.max_timeout") ? {} : { max_timeout: 0 }),
        ...(isSet("runtime.max_timeout") || isSet("runtime.default_timeout") ? {} : { default_timeout: 0 }),
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}

const PREFIX = "agentfense-private-";
const PREFIX_OF_SOCKETS = `${PREFIX}socket-`;
const SOCKET = "grpc.sock";

/**
 * The user's directory for such, else that for temporary files; not where a socket's path would get too long, nor where another
 * user could put a directory in the place of ours.
 */
async function socketParent({ XDG_RUNTIME_DIR: runtime = "" }: NodeJS.ProcessEnv): Promise<string> {
  const candidates = [...((await isOurs(runtime)) ? [runtime] : []), tmpdir(), "/tmp"];
  for (const each of candidates) {
    if (fitsSocket(join(each, `${PREFIX_OF_SOCKETS}XXXXXX`, SOCKET)) && (await keepsWhatIsOurs(each))) return each;
  }
  throw new CommandFailure("there is no place for a socket that no other user can reach");
}

const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;

/** Whether nobody but this user and root can rename what this user makes there, or any directory on the way to it. */
async function keepsWhatIsOurs(directory: string): Promise<boolean> {
  const place = await realpath(directory);
  for (let each = place; ; each = dirname(each)) {
    const { uid, mode } = await stat(each);
    const isTrusted = uid === 0 || uid === process.geteuid?.();
    if (!isTrusted || ((mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0)) return false;
    if (each === "/") return true;
  }
}

/** Not that of the user we were a moment ago, before sudo or su. */
async function isOurs(directory: string): Promise<boolean> {
  if (!isAbsolute(directory)) return false;
  try {
    const entry = await stat(directory);
    await access(directory, constants.W_OK | constants.X_OK);
    return entry.isDirectory() && entry.uid === process.geteuid?.();
  } catch {
    return false;
  }
}
