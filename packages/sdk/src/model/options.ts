import type { Rule } from "@agentfense/permission";

/** Every call that waits takes a signal. Aborting throws its reason, and ends what the call had started. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** How a server is reached. */
export interface ConnectionOptions {
  /** "https://host:9000", "http://…", "host:port" or "unix:/path"; default: AGENTFENSE_ENDPOINT. */
  readonly endpoint?: string | undefined;
  /** Default: AGENTFENSE_API_KEY. */
  readonly apiKey?: string | undefined;
  readonly tls?: TlsOptions | undefined;
  /** For every call that is not a stream and does not run a command; default 60 s. */
  readonly requestTimeoutMs?: number | undefined;
  /** How often an idempotent call is tried again when the server cannot be reached or is busy; default 3, 0 is never. */
  readonly retries?: number | undefined;
}

/** PEM texts. */
export interface TlsOptions {
  /** Trusted besides the usual ones. */
  readonly ca?: string | undefined;
  /** The certificate of this client, for servers that ask for one. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/**
 * Which rules a sandbox gets.
 *
 * | preset | permissions | the rules                            |
 * | ------ | ----------- | ------------------------------------ |
 * | absent | absent      | those of the preset agent-safe       |
 * | given  | absent      | the preset's                         |
 * | absent | given       | exactly these; none at all hides all |
 * | given  | given       | the preset's, then these             |
 */
export interface RuleOptions {
  readonly preset?: string | undefined;
  readonly permissions?: readonly Rule[] | undefined;
}

export type RuntimeName = "bwrap" | "docker";
/** What a sandbox reaches: nothing, the hosts of a list, the internet and nothing private, or what this machine does. */
export type NetworkMode = "none" | "filtered" | "private" | "host";

/** A line of the list of a filtered network. */
export interface NetworkRule {
  /** A name, or "*.example.com" for all names below one. */
  readonly host: string;
  /** Default 443 and 80. */
  readonly ports?: readonly number[] | undefined;
  /** With methods or paths, TLS to the host is opened to look at requests. Default: all. */
  readonly methods?: readonly string[] | undefined;
  /** "/v1/*" */
  readonly paths?: readonly string[] | undefined;
  /** Networks such as "10.1.0.0/16": the host is reached at addresses in there alone, which may be private. Default: at public ones. */
  readonly addresses?: readonly string[] | undefined;
}

/** What a sandbox with a filtered network may reach. */
export interface NetworkList {
  /** Hosts as "pypi.org", "*.npmjs.org", "github.com:22,443" or "git.example.com@10.1.0.0/16", or as rules. */
  readonly allow?: readonly (string | NetworkRule)[] | undefined;
  /** Lists of the server's: "npm", "pypi", "github" … */
  readonly presets?: readonly string[] | undefined;
}

/** Where the value of a secret comes from. It is read here, and sent with the request. */
export type SecretSource =
  | { readonly value: string; readonly fromEnv?: undefined; readonly file?: undefined; readonly command?: undefined }
  | { readonly fromEnv: string; readonly value?: undefined; readonly file?: undefined; readonly command?: undefined }
  /** Without its last line end. */
  | { readonly file: string; readonly value?: undefined; readonly fromEnv?: undefined; readonly command?: undefined }
  /** A line for the shell that prints it. */
  | { readonly command: string; readonly value?: undefined; readonly fromEnv?: undefined; readonly file?: undefined };

/** Where in a request a secret is sent. */
export type SecretPlace = "bearer" | "basic" | "body" | `header ${string}` | `query ${string}`;

/** A secret that stays outside of sandboxes: in them a variable of its name holds a placeholder. */
export type SandboxSecret = SecretSource & {
  /** Towards these alone it is sent: names, or "*.example.com" for all names below one. */
  readonly hosts: readonly string[];
  readonly in: SecretPlace;
};

/** When changes reach the codebase: after each command, when `apply` or `sync` is called, or not at all. */
export type SyncMode = "on-exec" | "manual" | "never";

/** Absent: the server's default. */
export interface ResourceLimits {
  readonly memoryBytes?: number | undefined;
  /** Microseconds of CPU time per 100,000: 50_000 is half a CPU. */
  readonly cpuQuota?: number | undefined;
  readonly cpuShares?: number | undefined;
  readonly pidsLimit?: number | undefined;
  /** The most that the sandbox's changes and its home may take together. */
  readonly diskBytes?: number | undefined;
  readonly diskFiles?: number | undefined;
  /** Kept of each stream of a command. */
  readonly outputBytes?: number | undefined;
}

/** What a sandbox is made with, besides its codebase. */
export interface SandboxOptions extends RuleOptions {
  readonly runtime?: RuntimeName | undefined;
  /** For docker. */
  readonly image?: string | undefined;
  readonly resources?: ResourceLimits | undefined;
  /** Default none. A list means filtered. */
  readonly network?: NetworkMode | NetworkList | undefined;
  /**
   * What the sandbox may use and never has: by name, with their values or as "kept" for one that the server keeps; or the names of such.
   * Means a filtered network, with their hosts on its list.
   */
  readonly secrets?: readonly string[] | Readonly<Record<string, SandboxSecret | "kept">> | undefined;
  readonly sync?: SyncMode | undefined;
  /** For every command. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly expiresInMs?: number | undefined;
  /** Rule changes reach files that are open already. */
  readonly revocable?: boolean | undefined;
  /** Pauses it when nothing was asked of it for so long, until the next command; 0: never. Default: the server's, usually never. */
  readonly idlePauseMs?: number | undefined;
  /**
   * A home that outlives the sandbox, for one sandbox at a time: in this process a directory ("./home", made if absent), on a
   * server a name. Default: one of its own, which goes with it.
   */
  readonly home?: string | undefined;
}

/** What a command is run with. */
export interface CommandOptions extends CallOptions {
  /** Default 60 s for `run`; otherwise the server's, usually 30 s; in this process none. More than a maximum is an error. */
  readonly timeoutMs?: number | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Absolute, or relative to the workspace; default /workspace. */
  readonly workdir?: string | undefined;
  readonly stdin?: string | Uint8Array | undefined;
}

/** Sees output as it comes, decoded as UTF-8 across pieces. A promise is waited for: a slow reader slows the command. */
export interface OutputCallbacks {
  readonly onStdout?: ((text: string) => void | Promise<void>) | undefined;
  readonly onStderr?: ((text: string) => void | Promise<void>) | undefined;
}

export interface RunOptions extends CommandOptions, OutputCallbacks {
  /** Throws CommandExecutionError on a non-zero exit code and CommandTimeoutError when the time was up. */
  readonly check?: boolean | undefined;
}

/** A line for the shell, or a program and its arguments without a shell. */
export type Command = string | readonly [program: string, ...args: string[]];

export interface PageOptions extends CallOptions {
  /** How many to fetch at a time. */
  readonly pageSize?: number | undefined;
}

export interface UploadProgress {
  readonly phase: "reading" | "uploading";
  readonly doneBytes: number;
  readonly totalBytes: number;
  readonly files: number;
}

export interface UploadDirectoryOptions extends CallOptions {
  /** Heed .gitignore and .agentfenseignore; default true. */
  readonly ignoreFiles?: boolean | undefined;
  /** More patterns, as in .gitignore. */
  readonly ignore?: readonly string[] | undefined;
  /** Default false. */
  readonly includeGit?: boolean | undefined;
  /** Leave out what cannot be read instead of failing; default false. */
  readonly skipUnreadable?: boolean | undefined;
  readonly onProgress?: ((progress: UploadProgress) => void) | undefined;
  /** Remove from the codebase what the directory does not have. */
  readonly replaceAll?: boolean | undefined;
  readonly message?: string | undefined;
  /** Refused with VERSION_CONFLICT unless the codebase is at this version. */
  readonly baseVersion?: number | undefined;
}
