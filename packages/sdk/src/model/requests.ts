import type { CallOptions, CommandOptions, PageOptions, SandboxOptions, SandboxSecret } from "./options.ts";
import type { ApiKey, CodeLanguage, Role, SandboxStatus } from "./records.ts";

// What the calls of SandboxClient take, beyond what they have in common with Sandbox.

/** Content of a file. What comes in pieces is sent as it comes, and never all in memory. */
export type Content = string | Uint8Array | AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>;

export interface CreateCodebaseRequest {
  readonly name: string;
  /** With API keys in force: the key's owner, or absent. Without: somebody must be named. */
  readonly ownerId?: string | undefined;
}

export interface ListCodebasesOptions extends PageOptions {
  readonly ownerId?: string | undefined;
}

export interface UploadFileOptions extends CallOptions {
  /** Permission bits; default: those of the file that is replaced, else 0o644. */
  readonly mode?: number | undefined;
  /** In hexadecimal; checked against what arrives. */
  readonly sha256?: string | undefined;
}

/** What a path of a codebase is to be. */
export type ManifestEntry =
  | {
      readonly kind: "file";
      readonly path: string;
      /** Default 0o644. */
      readonly mode?: number | undefined;
      readonly size: number;
      readonly sha256: string;
    }
  | { readonly kind: "directory"; readonly path: string; readonly mode?: number | undefined }
  | { readonly kind: "symlink"; readonly path: string; readonly target: string }
  /** Nothing is to be there. */
  | { readonly kind: "absent"; readonly path: string };

/** The same with its content, which may be absent where the server has it. */
export type BatchEntry = ManifestEntry & { readonly content?: Uint8Array | AsyncIterable<Uint8Array> | undefined };

export interface BatchOptions extends CallOptions {
  /** Everything that no entry names is removed. */
  readonly replaceAll?: boolean | undefined;
  /** Refused with VERSION_CONFLICT unless the codebase is at this version. */
  readonly baseVersion?: number | undefined;
  readonly message?: string | undefined;
  /** Content that is on its way, as it is sent. */
  readonly onBytes?: ((count: number) => void) | undefined;
}

export interface UploadArchiveOptions extends CallOptions {
  readonly replaceAll?: boolean | undefined;
  readonly message?: string | undefined;
}

export interface VersionOptions extends CallOptions {
  /** Default: the newest. */
  readonly version?: number | undefined;
}

export interface DownloadArchiveOptions extends VersionOptions {
  /** A directory; default: everything. */
  readonly path?: string | undefined;
}

export interface ListFilesOptions extends VersionOptions, PageOptions {
  readonly path?: string | undefined;
  readonly recursive?: boolean | undefined;
}

export interface RecursiveOptions extends CallOptions {
  readonly recursive?: boolean | undefined;
}

export interface CreateSandboxRequest extends SandboxOptions {
  readonly codebaseId: string;
  /** Pins it to a version; default: the newest, and it follows. */
  readonly codebaseVersion?: number | undefined;
  /** Shows the workspace at "/home/NAME" too: the home of its commands, and where they run. Default: a home apart from it. */
  readonly workspaceHome?: string | undefined;
  /** Pauses it at its expiry, where it runs then, and keeps it. Default: it is destroyed. */
  readonly pauseAtExpiry?: boolean | undefined;
}

export interface SnapshotOptions extends CallOptions {
  /** For people. */
  readonly label?: string | undefined;
}

export interface ListSnapshotsOptions extends OwnerOptions {
  /** Default: of all sandboxes, those that are gone included. */
  readonly sandboxId?: string | undefined;
}

export interface RestoreOptions extends CallOptions {
  /** What becomes of the processes that run. Default: they are ended. "refuse": it is an error that there are any. */
  readonly processes?: "end" | "refuse" | undefined;
}

/** What it does not say is as in the sandbox that it is made of, but for labels, secrets, home and expiry. */
export interface ForkOptions extends SandboxOptions, CallOptions {
  /** Default 1. */
  readonly count?: number | undefined;
  /** A snapshot of the sandbox. Default: what it has now. */
  readonly snapshotId?: string | undefined;
}

export interface UpdateExpiryOptions extends CallOptions {
  /** Leaves a later time as it is. */
  readonly extendOnly?: boolean | undefined;
}

export interface AttachOptions extends CallOptions {
  /** Gives only what comes from now on. */
  readonly skipKept?: boolean | undefined;
}

export interface ListSandboxesOptions extends PageOptions {
  readonly codebaseId?: string | undefined;
  readonly ownerId?: string | undefined;
  readonly status?: SandboxStatus | undefined;
  /** Those that have all of these. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

export interface OwnerOptions extends CallOptions {
  /** For administrators: whose. */
  readonly ownerId?: string | undefined;
}

export type PutSecretOptions = SandboxSecret & OwnerOptions;

export interface ExecOptions extends CommandOptions {
  /** Throws CommandExecutionError on a non-zero exit code and CommandTimeoutError when the time was up. */
  readonly check?: boolean | undefined;
}

export interface InteractiveOptions extends Omit<CommandOptions, "stdin"> {
  /** Its end is the end of the command's input. */
  readonly stdin: AsyncIterable<Uint8Array>;
}

export interface CreateSessionOptions extends CallOptions {
  /** Default: the sandbox's first one. */
  readonly shell?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly workdir?: string | undefined;
  readonly idleTimeoutMs?: number | undefined;
}

export interface SessionStreamOptions extends CallOptions {
  readonly timeoutMs?: number | undefined;
}

export interface SessionExecOptions extends SessionStreamOptions {
  readonly check?: boolean | undefined;
}

export interface PathsOptions extends CallOptions {
  /** Each with all below it; default: everything. An empty list is nothing. */
  readonly paths?: readonly string[] | undefined;
}

export interface ChangesOptions extends PageOptions {
  /**
   * For people: directory by directory, and what the codebase's `.gitignore` files name as one item for each directory of it,
   * behind everything else. Default: every change, in path order.
   */
  readonly fold?: boolean | undefined;
}

export interface DiffOptions extends PathsOptions {
  /**
   * A patch for `git apply`, as `git diff --binary` prints it: binary and large files in full. Default: for people, where of
   * these only is said that they differ.
   */
  readonly patch?: boolean | undefined;
}

export interface ApplyOptions extends PathsOptions {
  /** Tells what would happen, and does nothing. */
  readonly dryRun?: boolean | undefined;
  /** Leaves what the host may run or trust without being asked to where it is. */
  readonly holdExecutables?: boolean | undefined;
}

/** Extended attributes that a file is written with. */
export interface AttributeOptions {
  /** Extended attributes by their names without "user.". */
  readonly attributes?: Readonly<Record<string, string>> | undefined;
  /** The file loses those whose names begin so and that are not given. Default: none. */
  readonly attributePrefix?: string | undefined;
}

export interface WithAttributes {
  /** With extended attributes. */
  readonly attributes?: boolean | undefined;
}

export interface WriteFileOptions extends CallOptions, AttributeOptions {
  /** Permission bits of a new file; default 0o644. */
  readonly mode?: number | undefined;
  readonly append?: boolean | undefined;
}

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export interface OpenTerminalOptions extends CallOptions, TerminalSize {
  /** Default: the sandbox's first shell. */
  readonly argv?: readonly string[] | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly workdir?: string | undefined;
}

export interface CodeContextOptions extends CallOptions {
  /** Default python. */
  readonly language?: CodeLanguage | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Absolute, or relative to the workspace; default where commands run. */
  readonly workdir?: string | undefined;
}

export interface CodeOptions extends CallOptions {
  /** Default: that of the context, or python. */
  readonly language?: CodeLanguage | undefined;
  /** The id of a context. Default: the language's own, which is made when it is first used. */
  readonly contextId?: string | undefined;
  /** For this code alone. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Then it is interrupted, and the names stay; only an interpreter that does not heed this is killed. */
  readonly timeoutMs?: number | undefined;
}

export interface SpawnOptions extends CallOptions {
  /** Another name for it: a letter, then letters, digits, dots, underscores and hyphens; 64 at most. */
  readonly tag?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Absolute, or relative to the workspace; default /workspace. */
  readonly workdir?: string | undefined;
  /** Whether it has an input; default false: it reads an end of file. */
  readonly stdin?: boolean | undefined;
  /** Runs it on a terminal of this size, which has an input always. */
  readonly terminal?: TerminalSize | undefined;
  /** It is killed with all that it started after this time; default: never. */
  readonly timeoutMs?: number | undefined;
}

/** A terminal that is open, until its program ends or `close` is called. */
export interface TerminalConnection extends AsyncDisposable {
  /** To be read once, to its end. What is not read holds the program up. */
  readonly output: AsyncIterable<Uint8Array>;
  /** Settles when the output was read to its end; 129, as after a hang-up, when it was closed from here. */
  readonly exit: Promise<{ readonly exitCode: number }>;
  /** Resolves when it is on its way. Nothing happens after the program has ended. */
  write(data: string | Uint8Array): Promise<void>;
  resize(size: TerminalSize): Promise<void>;
  /** Ends what runs in it. */
  close(): Promise<void>;
}

export interface GetPortOptions extends CallOptions {
  /** How long the token is valid; default: an hour, at most a week. */
  readonly expiresInMs?: number | undefined;
}

export interface WaitForPortOptions extends CallOptions {
  /** Default: 30 s, at most ten minutes. */
  readonly timeoutMs?: number | undefined;
}

/** A connection to a port. Ending one direction leaves the other open; `close` ends both. */
export interface PortConnection extends AsyncDisposable {
  /** What is not read holds the sender up. */
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  close(): Promise<void>;
}

export interface EventFilter {
  readonly sandboxId?: string | undefined;
  readonly codebaseId?: string | undefined;
  readonly ownerId?: string | undefined;
  /** Any of these; default: all. */
  readonly types?: readonly string[] | undefined;
}

export interface ListEventsOptions extends EventFilter, PageOptions {
  /** Inclusive. */
  readonly after?: Date | undefined;
  /** Exclusive. */
  readonly before?: Date | undefined;
}

export interface WatchEventsOptions extends EventFilter, CallOptions {
  /** Begins after the event with this sequence; default: with what happens next. */
  readonly afterSequence?: number | undefined;
}

export interface CreateKeyRequest {
  /** May be absent for an administrator only. */
  readonly ownerId?: string | undefined;
  /** Default user. */
  readonly role?: Role | undefined;
  readonly name?: string | undefined;
}

/** The secret is shown this once. */
export interface CreatedKey {
  readonly key: ApiKey;
  readonly secret: string;
}
